"""`direct-predict` in a running program."""

from __future__ import annotations

import functools
import sys
from time import perf_counter
from types import ModuleType
from typing import Any

from flatout.cures._function_replacement import is_array
from flatout.cures._keras_arguments import caller_location
from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch

_DEFAULT_BATCH = 32


def on_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "predict")


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "legacy-predict")


def _install(injection: Injection, key: str) -> None:
    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def predict(self: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
            if not _direct(self, x, args, kwargs):
                return original(self, x, *args, **kwargs)
            start = perf_counter()
            result = self.predict_on_batch(_as_floatx(x))
            _tick(injection, start)
            injection.changed(f"predict on one batch goes straight to the model{caller_location()}")
            return result

        return predict

    patch(key, wrap)


def _direct(model: Any, x: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether this call is one batch in memory and asks for nothing but the result."""
    given = dict(zip(("batch_size", "verbose"), args, strict=False))
    given.update(kwargs)
    if len(args) > 2 or set(given) - {"batch_size", "verbose"} or given.get("verbose", "auto") != 0:
        return False
    if not getattr(model, "built", False) or getattr(model, "run_eagerly", False):
        return False
    if int(getattr(model, "_steps_per_execution", None) or 1) > 1:
        return False  # tf_keras would look for as many batches
    leaves = x if isinstance(x, (list, tuple)) else list(x.values()) if isinstance(x, dict) else [x]
    if not leaves or not all(is_array(leaf) and len(leaf.shape) > 0 for leaf in leaves):
        return False
    rows = {leaf.shape[0] for leaf in leaves}
    most = given.get("batch_size") or _DEFAULT_BATCH
    return len(rows) == 1 and 0 < rows.pop() <= most


def _as_floatx(x: Any) -> Any:
    """As `predict` does with what it is given: arrays of other floats become those of the model."""
    import numpy as np

    if isinstance(x, (list, tuple)):
        return type(x)(map(_as_floatx, x))
    if isinstance(x, dict):
        return {name: _as_floatx(leaf) for name, leaf in x.items()}
    floatx = sys.modules["keras"].config.floatx() if "keras" in sys.modules else "float32"
    return x.astype(floatx) if isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.dtype != floatx else x


def _tick(injection: Injection, start: float) -> None:
    """A call is a step, as a batch of `predict` was: the callbacks that would tell so are left out."""
    observer = injection.observer
    stream = observer.streams.get("predict")
    if stream is None:
        stream = observer.streams.make("predict", "predict", "predict")
    observer.ticks.tick(stream, start, perf_counter())


HOOKS = Hooks(keras=on_keras, tf_keras=on_tf_keras)
