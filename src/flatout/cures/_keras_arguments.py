"""Changes the arguments of a Keras method on its way in: `compile`, `fit`, `predict`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from flatout.cures import _frozen_here
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch
from flatout.source import users_code

Arguments = dict[str, Any]


def change_arguments(key: str, change: Callable[[Any, Arguments], None]) -> None:
    """Let `change(model, arguments)` edit the arguments that the program passed; others are missing in it."""

    def wrap(original: Any) -> Any:
        signature = inspect.signature(original)

        @functools.wraps(original)
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                bound = signature.bind(self, *args, **kwargs)
            except TypeError:
                return original(self, *args, **kwargs)  # the program's own error
            change(self, bound.arguments)
            return original(*bound.args, **bound.kwargs)

        return method

    patch(key, wrap)


def stays_eager(injection: Injection, arguments: Arguments) -> bool:
    """Whether a model that is compiled with these arguments will run eagerly, with `no-run-eagerly` or without."""
    injections = injection.observer.injections
    undone = injections is not None and "no-run-eagerly" in injections.names
    return bool(arguments.get("run_eagerly")) and not (undone and _frozen_here.keras() is None)


def caller_location() -> str:
    """` (file:line)` of the user's code that led here, or nothing."""
    found = users_code.here(2)
    return f" ({found[0]}:{found[1]})" if found is not None else ""
