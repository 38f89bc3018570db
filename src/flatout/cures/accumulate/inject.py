"""`accumulate` in a running program."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from flatout.cures import _batch_size
from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    _batch_size.resize_datasets(injection, lambda size: _part(injection, size))


def on_keras(injection: Injection, module: ModuleType) -> None:
    _batch_size.resize_arrays(injection, "fit", lambda size: _part(injection, size))

    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def compile(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            optimizer = self.optimizer
            if getattr(optimizer, "gradient_accumulation_steps", 0) is None and not optimizer.built:
                optimizer.gradient_accumulation_steps = _parts(injection)
            elif not injection.failed:
                injection.failed = "an optimizer does not accumulate: with smaller batches alone, each update sees less"
            return result

        return compile

    patch("compile", wrap)


def _parts(injection: Injection) -> int:
    return max(int(injection.value or 2), 2)


def _part(injection: Injection, size: int) -> int | None:
    """Only a batch that divides evenly: parts of unequal size would not weigh the same."""
    whole = size % _parts(injection) == 0 and not injection.failed
    return size // _parts(injection) if whole else None


HOOKS = Hooks(tensorflow=on_tensorflow, keras=on_keras)
