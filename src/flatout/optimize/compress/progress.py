"""Progress of long tasks on standard error: what runs, and how much time is left."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

QUIET_SECONDS = 3.0
"""Tasks that end sooner print nothing, and no two lines are closer together."""

_shown: ContextVar[bool] = ContextVar("flatout_compress_progress", default=True)


@contextlib.contextmanager
def silent(quiet: bool = True) -> Iterator[None]:
    token = _shown.set(not quiet)
    try:
        yield
    finally:
        _shown.reset(token)


class Progress:
    """A task of known length: `step(done)` estimates the time left from the parts that are done."""

    def __init__(self, task: str, total: int | None = None) -> None:
        self._task, self._total = task, total
        self._begun = self._reported = time.monotonic()
        self._first: tuple[int, float] | None = None

    def step(self, done: int, note: str = "") -> None:
        now = time.monotonic()
        if self._first is None:  # the first part includes one-time work: tracing, loading
            self._first = (done, now)
        if now - self._reported < QUIET_SECONDS or not _shown.get():
            return
        self._reported = now
        left = ""
        if self._total and done > self._first[0]:
            pace = (now - self._first[1]) / (done - self._first[0])
            left = f", {clock(pace * (self._total - done))} left"
        of = f" {done} of {self._total}" if self._total else f" {done}"
        print(f"flatout: {clock(now - self._begun)}  {self._task}{of}{left}{note}", file=sys.stderr, flush=True)  # noqa: T201


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def callback(task: str) -> Any:
    """A Keras callback that shows the progress of a `fit`."""
    import keras

    class ShowProgress(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_begin(self, logs: Any = None) -> None:
            steps = self.params.get("steps")
            self._steps = steps
            self._epoch = 0
            self._progress = Progress(task, steps * self.params["epochs"] if steps else None)

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self._epoch = epoch

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            done = (self._epoch * self._steps if self._steps else 0) + batch + 1
            self._progress.step(done, f"  (epoch {self._epoch + 1} of {self.params['epochs']})")

    return ShowProgress()
