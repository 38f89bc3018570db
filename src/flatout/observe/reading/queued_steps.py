"""Step times of a program whose steps are only queued: the host is done with a step long before the GPU is.

Now and then the observer waits until the device has finished (`device-wait` facts). Between two such waits the host's
times are wrong one by one and right as a whole: each step gets their mean.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
AHEAD = 0.03
"""Of the time between two waits, spent in the second: less, and the host is not ahead of the device."""


def spread(time: Floats, n: NDArray[np.int64], end: Floats, waits: list[tuple[float, float]]) -> Floats:
    """`time`: seconds of a step, one entry per tick of `n` steps, which ended at `end`. `waits`: when each began, and
    when it was over. Steps after the last wait keep the time of the ones before it."""
    if not waits or not len(time):
        return time
    spent = time * n
    began = np.array([first for first, _ in waits])
    group = np.searchsorted(began, end)  # the number of the first wait that began after the step's end
    found: Floats = time.copy()
    last = None
    for number, (first, over) in enumerate(waits):
        mine = np.flatnonzero(group == number)
        if not len(mine):
            continue
        after = mine[-1] + 1
        if after < len(spent):
            spent[after] = max(spent[after] - (over - first), 0.0)  # the wait lies before the next step's end
            found[after] = spent[after] / n[after]
        whole = float(spent[mine].sum()) + over - first
        if over - first >= AHEAD * whole:
            last = found[mine] = whole / n[mine].sum()
    rest = group == len(waits)
    if last is not None and rest.any():
        found[rest] = last
    return found
