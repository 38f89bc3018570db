"""Runs that took turns: before, after, before, after.

A machine whose speed wanders over minutes gives neighbours nearly the same speed. So each run is compared with the one
beside it, and neither the slow changes nor the error of measuring the speed come in. Sides that were measured one after
the other can only have the speed taken out (`pace.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from flatout.store.run import Run

FEWEST = 3
"""Pairs that are needed: with fewer, the spread of their differences is hardly known."""


def pairs(before: Sequence[Run], after: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Each run before with the run after that was beside it; none where they did not take turns."""
    if len(before) != len(after) or len(before) < FEWEST or not all(run.started for run in (*before, *after)):
        return []
    order = sorted([(0, run) for run in before] + [(1, run) for run in after], key=lambda item: item[1].started)
    found = []
    for (side, run), (other, next_run) in zip(order[::2], order[1::2], strict=True):
        if side == other:
            return []
        found.append((next_run, run) if side else (run, next_run))
    return found


def as_one(together: Sequence[tuple[Run, Run]]) -> list[float]:
    """The differences of the pairs, in logarithms, each shared out to its two runs as if they were independent."""
    return [math.log(new.median_ms / old.median_ms) / math.sqrt(2) for old, new in together]
