"""Changes the batch size of a program: that of `fit` on arrays, and that of `Dataset.batch`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from flatout.cures._keras_arguments import Arguments, caller_location, change_arguments
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch
from flatout.source import users_code

Resize = Callable[[int], int | None]
"""The new size for an old one, or None where it stays."""

KERAS_DEFAULT = 32


def resize_datasets(injection: Injection, resize: Resize) -> None:
    """Resize `Dataset.batch` where the program itself calls it. Calls by Keras, for arrays, belong to `fit`."""

    def wrap(original: Any) -> Any:
        def batch(self: Any, batch_size: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(batch_size, int) and users_code.is_users(sys._getframe(1).f_code):
                size = resize(batch_size)
                if size is not None:
                    injection.changed(f"batches of {size} instead of {batch_size}{caller_location()}")
                    batch_size = size
            return original(self, batch_size, *args, **kwargs)

        return batch

    patch("dataset-batch", wrap)


def resize_arrays(injection: Injection, key: str, resize: Resize) -> None:
    """Resize `fit(x, y, batch_size=…)` on data that Keras itself cuts into batches."""

    def in_fit(model: Any, arguments: Arguments) -> None:
        x = arguments.get("x")
        if x is None or hasattr(x, "element_spec") or hasattr(x, "__next__") or hasattr(x, "on_epoch_end"):
            return
        given = arguments.get("batch_size") or KERAS_DEFAULT
        size = resize(int(given))
        if size is not None:
            arguments["batch_size"] = size
            injection.changed(f"batches of {size} instead of {given}{caller_location()}")

    change_arguments(key, in_fit)
