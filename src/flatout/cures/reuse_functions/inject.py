"""`reuse-functions` in a running program."""

from __future__ import annotations

from collections import OrderedDict
from types import FunctionType, MethodType, ModuleType
from typing import Any

from flatout.cures._free_variables import FreeVariables
from flatout.cures._spec import Hooks
from flatout.cures._tracing import Unfit
from flatout.cures.reuse_functions import FROM_MAKING
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch
from flatout.source import users_code

MOST_KEPT = 32


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
    around = FreeVariables(python, bound)
    objects += around.objects(bound)
    defaults = (*(python.__defaults__ or ()), *(python.__kwdefaults__ or {}).values())
    objects += defaults
    code = python.__code__
    return (code, tuple(map(id, bound)), id(python.__globals__), tuple(map(_told, defaults)), around.now(bound))


def _told(value: Any) -> Any:
    return (type(value), value) if isinstance(value, (int, float, str, bool, type(None))) else id(value)


HOOKS = Hooks(tensorflow=on_tensorflow)
