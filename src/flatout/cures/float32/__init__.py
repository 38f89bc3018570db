"""A Keras program that asked for double precision computes in single precision.

## What it does
Lets `set_floatx("float64")`, a policy of float64 and a layer's `dtype="float64"` mean float32, for Keras 3 and
tf_keras.

## When it pays
Nearly always where it applies: double precision moves twice the bytes, uses half of each vector register, and
runs at 1/2 to 1/64 of the speed on a GPU.

## What it changes
Precision: 24 bits of mantissa instead of 53. Training rarely needs more; a simulation, a solver or a very long
sum may. What the program itself computes in float64 outside of Keras stays as it is.

## In the source
```python
keras.backend.set_floatx("float32")        # or leave the line out
```
"""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

from flatout.cures._compiling import place
from flatout.model.case import Case, Equivalence
from flatout.observe.injection import Injection

EQUIVALENCE: Equivalence = "precision"
SIDE = "compute"


def skip(case: Case) -> str | None:
    asked = [item for item in case.evidence_of("switch") if "float64" in " ".join(item.data.get("given") or ())]
    found = any(finding.cause == "float64" for finding in case.findings)
    return None if asked or found else "nothing asks for double precision"


def on_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "keras", "floatx", "layer-init")
    _switch(injection, "keras", "dtype-policy")


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "tf_keras", "legacy-floatx", "legacy-layer-init")
    _switch(injection, "tf_keras", "legacy-dtype-policy")


def _install(injection: Injection, package: str, switch_key: str, layer_key: str) -> None:
    from flatout.observe.private_names import patch

    _switch(injection, package, switch_key)

    def wrap(original: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            if _is_double(kwargs.get("dtype")):
                kwargs["dtype"] = "float32"
                injection.changed(f"float32 instead of float64{place()}")
            original(self, *args, **kwargs)

        __init__.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]  # Keras asks for it
        return __init__

    patch(layer_key, wrap)


def _switch(injection: Injection, package: str, key: str) -> None:
    from flatout.cures._precision import replace_everywhere
    from flatout.observe.private_names import resolve

    _, _, original = resolve(key)

    def switch(value: Any) -> Any:
        if _is_double(value):
            value = "float32"
            injection.changed(f"float32 instead of float64{place()}")
        return original(value)

    switch.__doc__ = original.__doc__
    switch.__wrapped__ = original  # type: ignore[attr-defined]
    replace_everywhere(package, original, switch)


def _is_double(value: Any) -> bool:
    return "float64" in (value, getattr(value, "name", None))
