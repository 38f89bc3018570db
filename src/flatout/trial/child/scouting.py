"""Ends a scouting run once enough was seen of it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from typing import TYPE_CHECKING

from flatout.observe.imports import loaded
from flatout.observe.installing import finish
from flatout.observe.streams import RANK, TRAINING
from flatout.source import users_code
from flatout.source.analysis.training_sites import TrainingSite, unseen

if TYPE_CHECKING:
    from flatout.observe.observer import Observer
    from flatout.observe.streams import Stream
    from flatout.observe.window import Window
    from flatout.trial.settings import ScoutSettings

MOST_SECONDS = 12.0
ENOUGH_SECONDS = 3.0
FEWEST_STEPS = 6
"""Slow steps are watched for longer, until there are so many…"""
SETTLED = 8.0
"""Times the quickest step so far: one that takes longer traced a function, and does not count among these: a GAN traces
three models first…"""
SLOW_SECONDS = 45.0
"""…but no longer than this, without what the traces took."""
PLAY_SECONDS = 25.0
"""So long a program that has compiled a model is given to begin its training: an agent plays before it learns."""
OVER_SECONDS = 12.0
"""A kind of step that has not been seen for so long may be over for good."""

MOST_LASTED = 100
"""Steps whose times are kept for that."""

LATER_SECONDS = 45.0
"""So long the scout waits for sites of the source that the program has not come to: a phase of its training, the
prediction of an agent that mostly explores at first."""
PREDICTING_SECONDS = 30.0
"""The same where only predictions are missing: an arm of a condition may never be taken."""
LOOK_SECONDS = 3.0
"""From one look at what the program has come to until the next."""

MOST_FILES = 5000
MOST_TEXT = 2_000_000
"""Characters of a program whose source is searched for such sites."""

_LEAST_TRAINING = min(RANK[kind] for kind in TRAINING)
_leave = os._exit


class Scout:
    def __init__(self, observer: Observer, settings: ScoutSettings) -> None:
        self.observer = observer
        self._waits = settings.waits
        self._until = time.perf_counter() + settings.to_end if settings.to_end else 0.0
        """The moment up to which it is left alone, to come to its end."""
        self._began = 0.0
        self._highest = 0
        self._lasted: list[float] = []
        """Seconds from each tick of the highest kind to the next, of the first ones."""
        self._last = 0.0
        """When the last of these ended."""
        self._missing: list[TrainingSite] | None = None
        self._looked = 0.0
        self._phases = False
        """Whether training has come to a second site."""
        observer.hooks.at_end.append(self._write_files)

    def tick(self, stream: Stream, end: float, n: int) -> None:
        if not self._began:
            self._began = end
        elapsed = end - self._began
        window = self.observer.window
        if stream.rank > self._highest:
            self._highest, self._lasted = stream.rank, []
        elif stream.rank == self._highest and len(self._lasted) < MOST_LASTED:
            self._lasted.append(end - self._last)
        if stream.rank == self._highest:
            self._last = end
        # While a kind of lower rank goes on, it is open which of the two takes most of the time.
        settled = stream.rank == self._highest and not window.is_open and not _better_to_come(window)
        plays = self.observer.trial.compiled and self._highest < _LEAST_TRAINING and elapsed < PLAY_SECONDS
        if plays:
            return
        seen = window.opened_times > 0 and settled
        traced = [one for one in self._lasted if one > SETTLED * min(self._lasted)]
        slow = 1 + len(self._lasted) - len(traced) < FEWEST_STEPS and end - self._last < OVER_SECONDS
        over = elapsed - sum(traced) > SLOW_SECONDS if slow else elapsed > MOST_SECONDS
        if (seen and elapsed > ENOUGH_SECONDS and not slow) or over:
            with self.observer.spans.of_flatout():
                waits = self._waits and elapsed < LATER_SECONDS and self._more_to_come(end, elapsed)
            if waits:
                return
            if end < self._until:
                return
            missing = [[site.file, site.first, site.last] for site in self._missing or ()]
            self.observer.recorder.fact("scouted", seconds=elapsed, missing=missing)
            finish(self.observer)
            _leave(0)

    def _more_to_come(self, now: float, elapsed: float) -> bool:
        """Whether the program has yet to come to a place where it trains or predicts. Then all phases are seen for as
        long as there is time: which of them takes longest is not known before."""
        if self._phases or now - self._looked < LOOK_SECONDS:
            return True
        self._looked = now
        self.observer.write_counters()
        missing = unseen(_texts(_own_files()), _lines_in(self.observer.recorder.directory))
        if self._missing is not None:
            self._phases = any(site.trains and site not in missing for site in self._missing)
        done = not missing and not self._missing
        self._missing = missing
        trains = self._phases or any(site.trains for site in missing)
        return not done and (trains or elapsed < PREDICTING_SECONDS)

    def _write_files(self) -> None:
        """The program's own files: `tune --resume` reuses nothing where one of them has changed."""
        self.observer.recorder.fact("source-files", files=_own_files()[:MOST_FILES])


def _own_files() -> list[str]:
    named = {getattr(module, "__file__", None) for module in loaded()}
    own = [name for name in named if isinstance(name, str) and users_code.is_users_file(name)]
    return sorted({users_code.absolute(name) for name in own})


def _texts(files: list[str]) -> dict[str, str]:
    """Nothing where a program is too large to be searched in the midst of a run."""
    found: dict[str, str] = {}
    for file in files:
        with contextlib.suppress(OSError, ValueError), open(file, encoding="utf-8", errors="replace") as stream:
            found[file] = stream.read(MOST_TEXT + 1)
        if sum(map(len, found.values())) > MOST_TEXT:
            return {}
    return found


def _lines_in(directory: str) -> dict[str, set[int]]:
    """The lines, by file, that anything in the recording names."""
    found: dict[str, set[int]] = {}
    for name in ("facts.jsonl", "counters.jsonl"):
        with contextlib.suppress(OSError, ValueError), open(os.path.join(directory, name), encoding="ascii") as stream:
            for match in _PLACE.finditer(stream.read()):
                found.setdefault(users_code.absolute(json.loads(match[1])), set()).add(int(match[2]))
    return found


_PLACE = re.compile(r'\[("[^"\\]*(?:\\.[^"\\]*)*"), ?(\d+),')
"""A list that begins with a file and a line, as frames of stacks and places of counters do."""


def _better_to_come(window: Window) -> bool:
    """The window was opened for a stream that has turned out not to be the step."""
    return window.opened_for is not None and window.opened_for.rank < window.best
