"""The steps in which a function was traced, from the recording that is kept with a case.

The case has the times of the steps; the time that each spent on tracing is in the recording only.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from flatout.model.case import Case

MARKED = 0.05
"""A step is marked if tracing took at least this share: the hooks also see traces of a few microseconds."""


@dataclass(frozen=True)
class Marks:
    traced: tuple[int, ...] = ()
    """Positions in `steps.times_ms` of the steps in which a function was traced."""
    trace_ms: tuple[float, ...] = ()


def read_marks(case: Case, directory: Path | None) -> Marks:
    if directory is None or case.steps is None or not (directory / "ticks.bin").exists():
        return Marks()
    from flatout.observe.reading import recording, steps

    try:
        recorded = recording.load(directory)
        stream = steps.choose(steps.streams(recorded))
        if stream is None:
            return Marks()
        measured = steps.measure(recorded, stream)
    except (OSError, KeyError, TypeError, ValueError, json.JSONDecodeError):
        return Marks()
    repeats = np.minimum(measured.n, 1000)
    per_step = np.repeat(measured.trace / measured.n, repeats) * 1e3
    times = np.repeat(measured.time, repeats) * 1e3
    shown = len(case.steps.times_ms)
    if not shown or not len(times):
        return Marks()
    # The case may keep a sample of its times: a mark goes to the nearest step that is shown.
    hits = np.flatnonzero((per_step > MARKED * times) & (per_step > 0))
    positions = np.round(hits * (shown - 1) / max(1, len(times) - 1)).astype(int) if len(times) > shown else hits
    marks = {int(at): float(cost) for at, cost in zip(positions, per_step[hits], strict=True) if at < shown}
    return Marks(tuple(marks), tuple(round(cost, 3) for cost in marks.values()))
