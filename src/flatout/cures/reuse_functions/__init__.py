"""A tf.function that is made again and again from the same code is the first one again.

## What it does
Remembers the functions that `tf.function` has made. From the third making on, one with the same code, the
same object it is bound to, the same closure, defaults and options takes over the traces of the first.

## When it pays
When a helper wraps a step in `tf.function` at every call, or a decorated function is defined inside a loop:
every making is traced anew, and a trace costs as much as tens or hundreds of steps.

## What it changes
Nothing: exact. Python values that the code reads from around it (globals, attributes, closures) are compared,
and where one is another one, or the code does more than compute (prints, lists that grow), the function is
traced as before.

## In the source
```python
self.step = tf.function(self._step)        # once, in __init__

def train_on(self, x, y):
    return self.step(x, y)
```
"""

from __future__ import annotations

from collections import OrderedDict
from types import FunctionType, MethodType, ModuleType
from typing import Any

from flatout.cures._surroundings import Surroundings
from flatout.cures._tracing import Unfit
from flatout.model.case import Case, Equivalence
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch
from flatout.source import users_code

EQUIVALENCE: Equivalence = "exact"
SIDE = "host"

FROM_MAKING = 3
MOST_KEPT = 32


def skip(case: Case) -> str | None:
    made = [f for f in case.functions if f.instances >= FROM_MAKING + 1]
    return None if made else "no tf.function is made more than a few times from the same code"


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    kept: OrderedDict[Any, list[Any]] = OrderedDict()
    """By what it is made of: how often, the first function, and the objects whose identities the key holds."""

    def wrap_init(original: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            python = self._python_function
            function = python.__func__ if isinstance(python, MethodType) else python
            if not isinstance(function, FunctionType) or not users_code.is_users(function.__code__):
                return
            try:
                objects: list[Any] = []
                options = (self.input_signature, self._autograph, self._jit_compile, self._reduce_retracing)
                key = (_key(python, objects), repr(options), repr(sorted(self._attributes)))
            except Unfit:
                return
            entry = kept.get(key)
            if entry is None:
                kept[key] = [1, self, objects]
                while len(kept) > MOST_KEPT:
                    kept.popitem(last=False)
                return
            kept.move_to_end(key)
            entry[0] += 1
            first = entry[1]
            if first._variable_creation_config is None:
                entry[1] = self  # never called: nothing to take over yet
            elif entry[0] >= FROM_MAKING:
                self.__dict__ = first.__dict__
                injection.changed(f"{self._name} is made once")

        return __init__

    patch("function-init", wrap_init)


def _key(python: Any, objects: list[Any]) -> Any:
    """What a function is made of. Raises `Unfit` where making it anew may mean something else each time."""
    bound: tuple[Any, ...] = ()
    if isinstance(python, MethodType):
        bound = (python.__self__,)
        objects.append(python.__self__)
        python = python.__func__
    around = Surroundings(python, bound)
    objects += around.objects(bound)
    defaults = (*(python.__defaults__ or ()), *(python.__kwdefaults__ or {}).values())
    objects += defaults
    code = python.__code__
    return (code, tuple(map(id, bound)), id(python.__globals__), tuple(map(_told, defaults)), around.now(bound))


def _told(value: Any) -> Any:
    return (type(value), value) if isinstance(value, (int, float, str, bool, type(None))) else id(value)
