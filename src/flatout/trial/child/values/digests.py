"""All that a program puts out, however much that is, as sums over stretches of it.

The elements of all calls are one stream, however they are batched. Each stretch of it becomes three numbers: the sum
of its elements, each times a weight that depends on its place in the stream, the sum of their squares, and a sum of
whole numbers that says which elements are NaN or infinite; those count in no other. A wrong element, a missing one and
two that have changed places change the first; the second says how large that is. Where there are too many stretches,
two become one.
"""

from __future__ import annotations

from typing import Any

FIRST_SIZE = 256
MOST = 4096
"""Stretches that are kept."""
PIECE = 1 << 16
"""Elements that are worked on at a time."""
WHOLE = 1 << 20
"""Sums of whole numbers up to this are exact, in whatever order they are added."""
_ODD = 0x9E3779B97F4A7C15


class Digest:
    """Of one kind of output."""

    def __init__(self) -> None:
        self.size = FIRST_SIZE
        """Elements in each stretch."""
        self.length = 0
        """Elements so far."""
        self._rows: Any = None

    def add(self, values: Any) -> None:
        import numpy as np

        flat = np.asarray(values).reshape(-1)
        for begin in range(0, flat.size, PIECE):
            self._add(flat[begin : begin + PIECE].astype(np.float64))

    def rows(self) -> Any:
        """(weighted sum, sum of squares, which are no numbers) of each stretch; the last may be a part of one."""
        import numpy as np

        count = -(-self.length // self.size)
        return np.zeros((0, 3)) if self._rows is None else self._rows[:count].copy()

    def _add(self, values: Any) -> None:
        import numpy as np

        if self._rows is None:
            self._rows = np.zeros((MOST, 3))
        while self.length + values.size > MOST * self.size:
            halved = self._rows[0::2] + self._rows[1::2]
            self._rows = np.concatenate([halved, np.zeros_like(halved)])
            self.size *= 2
        places = np.arange(self.length, self.length + values.size, dtype=np.uint64)
        stretches = (places // np.uint64(self.size)).astype(np.int64)
        weights, known = _weights(places), np.isfinite(values)
        if not known.all():
            lost = np.floor(WHOLE * (weights + 1.0)) * (1.0 + np.isposinf(values) + 2.0 * np.isneginf(values))
            np.add.at(self._rows, (stretches, 2), np.where(known, 0.0, lost))
            values = np.where(known, values, 0.0)
        with np.errstate(all="ignore"):
            np.add.at(self._rows, (stretches, 0), values * weights)
            np.add.at(self._rows, (stretches, 1), values * values)
        self.length += values.size


def _weights(places: Any) -> Any:
    """Between -1 and 1, as good as random; the same for the same place in any run."""
    import numpy as np

    with np.errstate(over="ignore"):
        mixed = (places + np.uint64(1)) * np.uint64(_ODD)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(32)
    return mixed.astype(np.float64) / 2.0**63 - 1.0
