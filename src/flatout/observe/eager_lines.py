"""Counts what the program does eagerly at each of its lines: calls of models, weights read and set."""

from __future__ import annotations

import contextlib
from time import perf_counter
from types import FrameType
from typing import Any

from flatout.model.vocabulary import EagerKind
from flatout.observe.observer import Observer
from flatout.source import users_code

MOST = 200


class EagerLines:
    """The lines of one kind. Tells them when the recording is written."""

    def __init__(self, observer: Observer, kind: EagerKind) -> None:
        self.rows: dict[Any, list[Any]] = {}
        """Calls, their seconds, when the first began and when the last ended."""
        self._kind = kind
        self._observer = observer
        observer.hooks.at_flush.append(self._write)

    def add(self, frame: FrameType | None, seconds: float) -> None:
        """A call from this frame, or from the user's code nearest to it, took so long."""
        with contextlib.suppress(Exception):  # of recursion too deep, say: that is not for the program
            found = users_code.innermost(frame, 40)
            if found is not None:
                now = perf_counter()
                row = self.rows.setdefault((found.f_code, found.f_lineno), [0, 0.0, now - seconds, now])
                row[0] += 1
                row[1] += seconds
                row[3] = now

    def _write(self) -> None:
        rows = [
            [users_code.absolute(code.co_filename), line, code.co_name, code.co_firstlineno, *row]
            for (code, line), row in sorted(self.rows.items(), key=lambda item: -item[1][1])[:MOST]
        ]
        if rows:
            self._observer.recorder.fact("eager-lines", of=self._kind, rows=rows)
