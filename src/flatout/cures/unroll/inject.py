"""`unroll` in a running program."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from flatout.cures._spec import Hooks
from flatout.cures.unroll import LAYERS, LONGEST
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch


def on_keras(injection: Injection, module: ModuleType) -> None:
    def wrap(original: Any) -> Any:
        @functools.wraps(original)
        def call(self: Any, sequences: Any, *args: Any, **kwargs: Any) -> Any:
            mask = kwargs.get("mask", args[1] if len(args) > 1 else None)
            if self.unroll or not _is_short(self, sequences) or (mask is not None and self.go_backwards):
                return original(self, sequences, *args, **kwargs)
            # For this call alone: another one may come with sequences of any length.
            self.unroll = True
            try:
                result = original(self, sequences, *args, **kwargs)
            finally:
                self.unroll = False
            injection.changed(f"{self.name}: {sequences.shape[1]} time steps unrolled")
            return result

        return call

    patch("rnn-call", wrap)


def _is_short(layer: Any, sequences: Any) -> bool:
    shape = getattr(sequences, "shape", None)
    if type(layer).__name__ not in LAYERS or shape is None or len(shape) != 3:
        return False
    return isinstance(shape[1], int) and 1 < shape[1] <= LONGEST


HOOKS = Hooks(keras=on_keras)
