"""Ends a scouting run once enough was seen of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from flatout.observe.installing import finish

if TYPE_CHECKING:
    from flatout.observe.observer import Observer
    from flatout.observe.streams import Stream
    from flatout.observe.window import Window

MOST_SECONDS = 12.0
ENOUGH_SECONDS = 3.0

_leave = os._exit


class Scout:
    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self._began = 0.0
        self._highest = 0

    def tick(self, stream: Stream, end: float, n: int) -> None:
        if not self._began:
            self._began = end
        elapsed = end - self._began
        window = self.observer.window
        self._highest = max(self._highest, stream.rank)
        # While a kind of lower rank goes on, it is open which of the two takes most of the time.
        settled = stream.rank == self._highest and not window.is_open and not _better_to_come(window)
        seen = window.opened_times > 0 and settled
        if (seen and elapsed > ENOUGH_SECONDS) or elapsed > MOST_SECONDS:
            self.observer.recorder.fact("scouted", seconds=elapsed)
            finish(self.observer)
            _leave(0)


def _better_to_come(window: Window) -> bool:
    """The window was opened for a stream that has turned out not to be the step."""
    return window.opened_for is not None and window.opened_for.rank < window.best
