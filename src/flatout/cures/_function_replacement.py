"""Replaces a Python function by a traced version, wherever that function is already referenced.

The function object stays: bound methods, `from module import step` and callbacks that hold it keep working. Only its
code object is exchanged, for one that forwards the call. A copy with the old code does the work.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from flatout.cures._free_variables import FreeVariables, in_order
from flatout.cures._tracing import Traced, Unfit, inside
from flatout.observe.injection import Injection

MOST_KEPT = 8
"""Sets of objects (models, optimizers) for which one function is traced before it is left alone."""
_TARGET = "flatout's target"


def functions_of(code: CodeType) -> list[FunctionType]:
    """All function objects that run this code now."""
    found = [f for f in gc.get_referrers(code) if isinstance(f, FunctionType) and f.__code__ is code]
    return [f for f in found if not hasattr(f, "_flatout_copy")]


def replace(function: FunctionType, call: Callable[..., Any]) -> None:
    """Let every call of this very function object go to `call`."""
    code = function.__code__
    signature = inspect.signature(function)
    outer = "".join(f"    {name} = None\n" for name in code.co_freevars)
    names = ", ".join(code.co_freevars) or "None"  # a function's code is only exchanged for one with as many cells
    source = (
        f"def make():\n{outer}    def f(*args, **kwargs):\n        if 0: {names}\n"
        f"        target = {_TARGET!r}\n        return target(*args, **kwargs)\n    return f\n"
    )
    scope: dict[str, Any] = {}
    exec(source, scope)
    new: CodeType = scope["make"]().__code__
    constants = tuple(call if constant == _TARGET else constant for constant in new.co_consts)
    function.__code__ = new.replace(
        co_consts=constants,
        co_name=code.co_name,
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
    )
    function.__signature__ = signature  # type: ignore[attr-defined]


def copy_of(function: FunctionType) -> FunctionType:
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__ = function.__qualname__
    copy.__module__ = function.__module__
    copy.__doc__ = function.__doc__
    copy.__annotations__ = function.__annotations__
    copy.__dict__.update(function.__dict__, _flatout_copy=True)
    return copy


class Step:
    """What a replaced function does now."""

    def __init__(self, injection: Injection, function: FunctionType, where: str) -> None:
        from tensorflow.python.eager import context

        self.injection = injection
        self.where = where
        self.text = f"{where} is traced"
        self.run = copy_of(function)
        self.eager = context.executing_eagerly
        self.free_variables: FreeVariables | None = None
        self.kept: dict[tuple[Any, ...], tuple[Traced, list[Any]]] = {}
        self.around: tuple[Any, ...] = ()
        self.off = False
        replace(function, self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.off or inside.now or not self.eager():
            return self.run(*args, **kwargs)
        inside.now = True
        try:
            return self._call(args, kwargs)
        except Unfit as error:
            self.off = True
            self.kept.clear()
            self.injection.note(f"{self.where} is not traced: {error}")
        finally:
            inside.now = False
        return self.run(*args, **kwargs)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            traced = self._traced(args, kwargs)
        except Unfit:
            raise
        except Exception as error:  # the program's objects may answer to anything in any way
            raise Unfit(f"what it reads cannot be compared ({type(error).__name__}: {error})") from error
        return traced.call(args, kwargs)

    def _traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
        """What was made for these objects, and for the present values of what the function reads."""
        given = in_order(self.run, args, kwargs)
        if self.free_variables is None:
            self.free_variables = FreeVariables(self.run, given)
        free = self.free_variables
        objects = [value for value in (*args, *kwargs.values()) if not is_data(value)]
        around = free.now(given)
        key = (*map(id, objects), *around)
        found = self.kept.get(key)
        if found is None:
            self._expect_few(free.differing(self.around, around))
            made = Traced(self.run, self.run.__name__, self._changed, self._left)
            found = self.kept[key] = (made, [*objects, *free.objects(given)])
        self.around = around
        return found[0]

    def _expect_few(self, changed: str) -> None:
        """Raises `Unfit` where what the function reads changes again and again."""
        if not self.kept:
            return
        what = changed or "an object among its arguments"
        self.injection.note(f"{what} is read in the traced step and changes: it is traced anew for each value")
        if len(self.kept) >= MOST_KEPT:
            why = f"{what} is read in the traced step and changes again and again ({MOST_KEPT} times so far)"
            self.injection.give_up(f"{self.where} is traced no longer: {why}")
            raise Unfit(why)

    def _changed(self) -> None:
        self.injection.changed(self.text)

    def _left(self, why: str) -> None:
        self.injection.note(f"{self.where} is not traced: {why}")


def is_data(value: Any) -> bool:
    """Whether a value goes into a graph as data; anything else is an object that the graph is made for."""
    import numpy as np
    import tensorflow as tf

    if isinstance(value, (int, float, bool, complex, str, bytes, type(None), np.ndarray, np.generic)):
        return True
    if isinstance(value, (list, tuple)):
        return all(map(is_data, value))
    if isinstance(value, dict):
        return all(map(is_data, value.values()))
    return tf.is_tensor(value) and not isinstance(value, tf.Variable)


def is_array(value: Any) -> bool:
    import numpy as np
    import tensorflow as tf

    return isinstance(value, np.ndarray) or (isinstance(value, tf.Tensor) and hasattr(value, "numpy"))
