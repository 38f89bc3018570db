"""Ends a scouting run once enough was seen of it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from flatout.observe.installing import finish
from flatout.observe.streams import RANK, TRAINING
from flatout.source import users_code

if TYPE_CHECKING:
    from flatout.observe.observer import Observer
    from flatout.observe.streams import Stream
    from flatout.observe.window import Window

MOST_SECONDS = 12.0
ENOUGH_SECONDS = 3.0
FEWEST_STEPS = 6
"""Slow steps are watched for longer, until there are so many…"""
SLOW_SECONDS = 45.0
"""…but no longer than this."""
PLAY_SECONDS = 25.0
"""So long a program that has compiled a model is given to begin its training: an agent plays before it learns."""
OVER_SECONDS = 12.0
"""A kind of step that has not been seen for so long may be over for good."""

MOST_FILES = 5000

_LEAST_TRAINING = min(RANK[kind] for kind in TRAINING)
_leave = os._exit


class Scout:
    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self._began = 0.0
        self._highest = 0
        self._ticks = 0
        """Of the highest kind."""
        self._last = 0.0
        """When the last of these ended."""
        observer.hooks.at_end.append(self._write_files)

    def tick(self, stream: Stream, end: float, n: int) -> None:
        if not self._began:
            self._began = end
        elapsed = end - self._began
        window = self.observer.window
        if stream.rank > self._highest:
            self._highest, self._ticks = stream.rank, 0
        if stream.rank == self._highest:
            self._ticks, self._last = self._ticks + 1, end
        # While a kind of lower rank goes on, it is open which of the two takes most of the time.
        settled = stream.rank == self._highest and not window.is_open and not _better_to_come(window)
        plays = self.observer.trial.compiled and self._highest < _LEAST_TRAINING and elapsed < PLAY_SECONDS
        if plays:
            return
        seen = window.opened_times > 0 and settled
        slow = self._ticks < FEWEST_STEPS and end - self._last < OVER_SECONDS
        if (seen and elapsed > ENOUGH_SECONDS and not slow) or elapsed > (SLOW_SECONDS if slow else MOST_SECONDS):
            self.observer.recorder.fact("scouted", seconds=elapsed)
            finish(self.observer)
            _leave(0)

    def _write_files(self) -> None:
        """The program's own files: `tune --resume` reuses nothing where one of them has changed."""
        named = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        own = [name for name in named if isinstance(name, str) and users_code.is_users_file(name)]
        files = sorted({users_code.absolute(name) for name in own})
        self.observer.recorder.fact("source-files", files=files[:MOST_FILES])


def _better_to_come(window: Window) -> bool:
    """The window was opened for a stream that has turned out not to be the step."""
    return window.opened_for is not None and window.opened_for.rank < window.best
