"""Packages that users call: `with flatout.observe():`, `flatout.run("train.py")`, `flatout.optimize(model, data)`.

Importing a package's submodule puts the package into `flatout`'s namespace, where a function of the same name would
otherwise stand. So the package itself becomes callable. The function is imported when it is first called or looked at;
its signature and its help are those of the package.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import types
from collections.abc import Callable
from typing import Any


def make_callable(module: types.ModuleType, call: Callable[..., Any] | str) -> None:
    """`module(…)` is `call(…)` from now on; `call` is a function, or the place of one: `package.module:function`."""

    @functools.cache
    def function() -> Callable[..., Any]:
        if not isinstance(call, str):
            return call
        name, _, attribute = call.partition(":")
        found: Callable[..., Any] = getattr(importlib.import_module(name), attribute)
        return found

    class CallableModule(types.ModuleType):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return function()(*args, **kwargs)

        @property
        def __signature__(self) -> inspect.Signature:
            return inspect.signature(function())

    CallableModule.__doc__ = module.__doc__
    module.__class__ = CallableModule
