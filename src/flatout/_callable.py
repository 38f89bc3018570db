"""Packages that users call: `with flatout.observe():`, `flatout.optimize(model, data)`.

Importing a package's submodule puts the package into `flatout`'s namespace, where a function of the same name would
otherwise stand. So the package itself becomes callable.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any


def make_callable(module: types.ModuleType, call: Callable[..., Any]) -> None:
    """`module(…)` is `call(…)` from now on."""

    def __call__(self: types.ModuleType, *args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    __call__.__doc__ = call.__doc__
    module.__class__ = type("CallableModule", (types.ModuleType,), {"__call__": __call__, "__doc__": module.__doc__})
