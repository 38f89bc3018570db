"""What a program puts out in all of its calls, compared by sums over stretches of it (`trial/child/values/digests.py`).

The first elements are kept as they are (`deviations.of_outputs`); these sums go on to the end of the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from flatout.measure.parity.deviations import Deviation
from flatout.measure.parity.distances import ratio
from flatout.measure.parity.numbers import OUTPUTS, Array, Digest

if TYPE_CHECKING:
    from flatout.measure.parity.numbers import Numbers


@dataclass(frozen=True)
class Pair:
    """The same output in two runs, which may have two names."""

    name: str
    ours: Digest
    theirs: Digest

    @property
    def size(self) -> int:
        """Elements in each stretch that is compared."""
        return max(self.ours.size, self.theirs.size)

    @property
    def stretches(self) -> int:
        """That both have put out as a whole; the last one may be shorter where both end there."""
        both = min(self.ours.length, self.theirs.length)
        return -(-both // self.size) if self.ours.length == self.theirs.length else both // self.size

    @property
    def compared(self) -> int:
        """Elements."""
        return min(self.stretches * self.size, self.ours.length, self.theirs.length)


def pairs(baseline: Numbers, trial: Numbers) -> list[Pair]:
    """By name. Where both have one only, a function may have come into the model's place; it may do more than the
    model does, so that counts only where the calls of models were not seen in both."""
    ours, theirs = baseline.digests, trial.digests
    found = [Pair(name, ours[name], theirs[name]) for name in sorted(set(ours) & set(theirs))]
    if not found and not models_seen(baseline, trial) and len(ours) == len(theirs) == 1:
        found = [Pair(next(iter(ours)), *ours.values(), *theirs.values())]
    return found


def of_digests(baseline: Numbers, trial: Numbers) -> Iterator[Deviation]:
    """Each stretch that both have put out as a whole; `steps` is its number, from 1 on."""
    for pair in pairs(baseline, trial):
        mine, other = _wider(pair.ours, pair.size), _wider(pair.theirs, pair.size)
        for number in range(pair.stretches):
            (one, square, lost), (another, _, other_lost) = mine[number], other[number]
            alike = bool((mine[number] == other[number]).all())
            apart = abs(float(one - another)) if lost == other_lost else math.inf
            scale = math.sqrt(float(square)) if math.isfinite(square) else 0.0
            value = 0.0 if alike else max(ratio(apart, scale), np.finfo(np.float32).tiny.item())
            yield Deviation("outputs", pair.name, number + 1, value, scale or 1.0)


def models_seen(baseline: Numbers, trial: Numbers) -> bool:
    """Whether calls of models were seen in both, eager or traced."""
    return any(name.startswith(OUTPUTS) for name in set(baseline.series) & set(trial.series))


def _wider(digest: Digest, size: int) -> Array:
    rows, have = digest.rows, digest.size
    while have < size:
        rows = np.concatenate([rows, np.zeros((len(rows) % 2, rows.shape[1]))])
        rows, have = rows[0::2] + rows[1::2], have * 2
    return rows
