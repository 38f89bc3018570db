"""What the program has XLA compile runs as a plain graph.

## What it does
Takes `jit_compile=True` back: for every tf.function, and in `compile` of Keras 3 and tf_keras (where `"auto"` means
XLA, too, as it does on a GPU).

## When it pays
When shapes vary: XLA knows fixed shapes only and compiles anew for each of them, for a second or more, where one graph
serves them all. And where XLA's kernels are slower than TensorFlow's own, as they are for many a model on a CPU.

## What it changes
Reassociated: the same mathematics in another order. Random numbers of TensorFlow's own ops differ.

## In the source
```python
@tf.function                       # without jit_compile=True
def train_step(images, labels): ...
```
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._compiling import Arguments, change_arguments, place
from flatout.model import queries as reading
from flatout.model.case import Case, Equivalence
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch

EQUIVALENCE: Equivalence = "reassociated"
SIDE = "compute"
CONFLICTS = ("xla",)


def skip(case: Case) -> str | None:
    of_model = reading.step_kind(case) in ("fit", "predict", "evaluate") and reading.step_fact(case, "jit_compile")
    if of_model or any(function.jit_compile for function in case.functions):
        return None
    return "XLA compiles nothing of the steps"


def on_keras(injection: Injection, module: ModuleType) -> None:
    _compile(injection, "compile")


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    _compile(injection, "legacy-compile")


def _compile(injection: Injection, key: str) -> None:
    def in_compile(model: Any, arguments: Arguments) -> None:
        if arguments.get("jit_compile", "auto") in (True, "auto"):
            asked = "jit_compile" in arguments
            arguments["jit_compile"] = False
            if asked:
                injection.changed(f"jit_compile taken back{place()}")

    change_arguments(key, in_compile)


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    def wrap_init(original: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            # Read when the function is first called, so that it is in time here.
            if self._jit_compile:
                self._jit_compile = None
                injection.changed(f"{self._name} runs as a plain graph")

        return __init__

    patch("function-init", wrap_init)
