"""Values pulled from TensorFlow into Python: which line, how often, how long, how many bytes."""

from __future__ import annotations

import contextlib
import sys
from time import perf_counter
from types import CodeType, ModuleType
from typing import Any

from flatout.observe.observer import Observer, Probe
from flatout.observe.private_names import Missing, Wrap, patch
from flatout.source import users_code

TENSOR_NAMES = (
    "tensor-numpy",
    "tensor-float",
    "tensor-int",
    "tensor-bool",
    "tensor-array",
    "tensor-str",
    "tensor-format",
)
DEEPEST = 6
MOST_TIMES = 1000
"""Pulls of a line of which the time is kept: enough to tell whether they are in every step."""
PASS_ON = ("numpy", "keras.src.backend.", "tensorflow.python.ops.resource_variable_ops")
"""Libraries through which the user's own line pulls; what TensorFlow pulls for itself is not the user's doing."""


class Pulls:
    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.rows: dict[tuple[CodeType, int], list[Any]] = {}
        self.inside = False
        observer.hooks.at_flush.append(self.write)

    def write(self) -> None:
        rows = [
            [users_code.absolute(code.co_filename), line, code.co_name, *row[:4], [round(at, 6) for at in row[4]]]
            for (code, line), row in sorted(self.rows.items(), key=lambda item: -item[1][1])[:200]
        ]
        if rows:
            self.observer.recorder.fact("pulls", rows=rows)


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    pulls = Pulls(observer)
    observer.shared.pulls = pulls
    for key in TENSOR_NAMES:
        with contextlib.suppress(Missing):
            patch(key, _wrap(observer, pulls, key.partition("-")[2]))
    patch("variable-numpy", _wrap(observer, pulls, "numpy"))


def on_keras(observer: Observer, module: ModuleType) -> None:
    pulls = observer.shared.pulls
    if isinstance(pulls, Pulls):  # without it, nothing of TensorFlow is counted either
        patch("keras-variable-numpy", _wrap(observer, pulls, "numpy"))


def _wrap(observer: Observer, pulls: Pulls, how: str) -> Wrap:
    thread, ticks = observer.thread, observer.ticks

    def wrap(original: Any) -> Any:
        def pull(self: Any, *args: Any, **kwargs: Any) -> Any:
            if pulls.inside or thread.busy:
                return original(self, *args, **kwargs)
            # The user's own line, or one that only passes the pull on (numpy, a variable).
            frame = sys._getframe(1)
            depth = 0
            while not users_code.is_users(frame.f_code):
                passes_on = str(frame.f_globals.get("__name__")).startswith(PASS_ON)
                if not passes_on or depth == DEEPEST or frame.f_back is None:
                    return original(self, *args, **kwargs)
                frame = frame.f_back
                depth += 1
            pulls.inside = True
            start = perf_counter()
            try:
                return original(self, *args, **kwargs)
            finally:
                elapsed = perf_counter() - start
                pulls.inside = False
                ticks.sync += elapsed
                key = (frame.f_code, frame.f_lineno)
                row = pulls.rows.get(key)
                if row is None:
                    row = pulls.rows[key] = [0, 0.0, 0, how, []]
                row[0] += 1
                row[1] += elapsed
                row[2] += _size(self)
                if row[0] <= MOST_TIMES:
                    row[4].append(start)

        return pull

    return wrap


def _size(tensor: Any) -> int:
    try:
        return int(tensor.shape.num_elements() * tensor.dtype.size)
    except Exception:
        return 0


PROBE = Probe("host_sync", tensorflow=on_tensorflow, keras=on_keras)
