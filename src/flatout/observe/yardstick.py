"""How fast the machine is while the program runs: a fixed piece of work, timed now and then.

On a shared machine the same step takes 4 ms in one minute and 6 in the next, because of a neighbour that no counter
shows: clocks fall, caches and the other half of a core are in use. The work here slows down with it. What counts is the
time of the processor that it took, not the time on the clock, so that the program itself, which wants the same cores,
is not what is measured. Comparing two runs needs this to tell a slower program from a slower machine.
"""

from __future__ import annotations

import math
from statistics import median
from time import thread_time
from typing import Any

ELEMENTS = 32_768
"""Two arrays of 128 KiB: out of the first cache, as the tensors of a step are, and done in some 60 µs."""
BIN_SECONDS = 1.0
MOST_BINS = 4000
MEDIAN_ERROR = 1.86
"""Standard error of a median for each median deviation, times the root of the count: 1.2533 × 1.4826."""


Bin = tuple[float, float, float]
"""When it began, the seconds that the work took in it (the median of some dozens), and the standard error of that."""


class Yardstick:
    def __init__(self) -> None:
        import numpy as np  # TensorFlow has it imported long ago

        self.by = f"numpy {np.__version__}"
        self.bins: list[Bin] = []
        values = np.linspace(0.5, 1.5, ELEMENTS, dtype=np.float32)
        self._work: Any = (np.multiply, np.sqrt, values, values.copy())
        self._begun = 0.0
        self._taken: list[float] = []
        self.work()  # the first time is not like the others

    def work(self) -> float:
        multiply, sqrt, values, other = self._work
        start = thread_time()
        multiply(values, values, out=other)
        sqrt(other, out=other)
        multiply(values, other, out=other)
        return thread_time() - start

    def take(self, now: float) -> None:
        if now - self._begun >= BIN_SECONDS:
            self.close()
            self._begun = now
        self._taken.append(self.work())

    def close(self) -> None:
        """End the current second."""
        if self._taken:
            self.bins.append(self._bin())
            self._taken = []
            if len(self.bins) > MOST_BINS:
                del self.bins[::2]

    def rows(self) -> list[Bin]:
        """What was taken so far, the second under way included."""
        return [*self.bins, self._bin()] if self._taken else list(self.bins)

    def _bin(self) -> Bin:
        taken = list(self._taken)
        middle = median(taken)
        apart = median(abs(seconds - middle) for seconds in taken)
        return self._begun, middle, MEDIAN_ERROR * apart / math.sqrt(len(taken))
