"""Runs of both sides that alternated: before, after, before, after.

The speed of a machine may drift over minutes, but two runs in a row see nearly the same speed. So each run is compared
with its neighbour, and neither the drift nor the error of measuring the speed enters the result. For sides that were
measured one after the other, the speed can only be corrected for (`machine_speed`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from flatout.store.run_summary import Run

FEWEST = 3
"""Pairs that are needed: with fewer, the spread of their differences is hardly known."""


def pairs(before: Sequence[Run], after: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Each run before with the neighbouring run after; empty where they did not alternate."""
    if len(before) != len(after) or len(before) < FEWEST or not all(run.started for run in (*before, *after)):
        return []
    order = sorted([(0, run) for run in before] + [(1, run) for run in after], key=lambda item: item[1].started)
    found = []
    for (side, run), (other, next_run) in zip(order[::2], order[1::2], strict=True):
        if side == other:
            return []
        found.append((next_run, run) if side else (run, next_run))
    return found


def pair_differences(paired: Sequence[tuple[Run, Run]]) -> list[float]:
    """The differences of the pairs in logarithms, scaled to the deviation that one of two independent runs has."""
    return [math.log(new.median_ms / old.median_ms) / math.sqrt(2) for old, new in paired]
