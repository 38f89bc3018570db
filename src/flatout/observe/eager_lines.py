"""Counts what the program does eagerly at each of its lines: calls of models, weights read and set."""

from __future__ import annotations

import contextlib
from time import perf_counter
from types import CodeType, FrameType
from typing import Any

from flatout.model.vocabulary import EagerKind
from flatout.observe.observer import Observer
from flatout.source import users_code

MOST = 200
MOST_TIMES = 1000
"""Calls of a line of which the time is kept, spread over all of them: they tell how many are in the steps."""


class EagerLines:
    """The lines of one kind. Tells them when the recording is written."""

    def __init__(self, observer: Observer, kind: EagerKind) -> None:
        self.rows: dict[Any, list[Any]] = {}
        """Calls, their seconds, when the first began and when the last ended."""
        self.moments: dict[Any, list[float]] = {}
        """When calls began: all, or every so many of them."""
        self._kind = kind
        self._observer = observer
        observer.hooks.at_flush.append(self._write)

    def add(self, frame: FrameType | None, seconds: float) -> None:
        """A call from this frame, or from the user's code nearest to it, took so long."""
        with contextlib.suppress(Exception):  # of recursion too deep, say: that is not for the program
            found = users_code.innermost(frame, 40)
            if found is not None:
                now = perf_counter()
                key = (found.f_code, found.f_lineno)
                row = self.rows.setdefault(key, [0, 0.0, now - seconds, now])
                row[0] += 1
                row[1] += seconds
                row[3] = now
                _keep(self.moments.setdefault(key, []), row[0], now - seconds)

    def _write(self) -> None:
        rows = [
            [*_place(*key), *row, [round(at, 6) for at in self.moments.get(key, ())]]
            for key, row in sorted(self.rows.items(), key=lambda item: -item[1][1])[:MOST]
        ]
        if rows:
            self._observer.recorder.fact("eager-lines", of=self._kind, rows=rows)


def _keep(times: list[float], calls: int, at: float) -> None:
    """Of the first calls all, then every second one, then every fourth one…"""
    every = 1 << ((calls - 1) // MOST_TIMES).bit_length()
    if (calls - 1) % every == 0:
        if len(times) >= MOST_TIMES:
            del times[1::2]
        times.append(at)


def _place(code: CodeType, line: int) -> tuple[Any, ...]:
    return users_code.absolute(code.co_filename), line, code.co_name, code.co_firstlineno
