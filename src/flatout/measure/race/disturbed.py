"""What is said where something else had the processors in many of the rounds."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from flatout.measure.processors import STARVED
from flatout.model.case import Note


def disturbed(taken: Iterable[Sequence[float]]) -> list[Note]:
    """A warning, or nothing. `taken`: of each race, the share of the processors that others had in each round."""
    shares = [share for race in taken for share in race]
    starved = [share for share in shares if share >= STARVED]
    if len(starved) < STARVED * len(shares) or not starved:
        return []
    text = f"Other programs used {100 * statistics.median(starved):.0f} % of the processors in {len(starved)} of "
    wider = f"{text}{len(shares)} rounds: the intervals are wider than on a quiet machine."
    return [Note("warning", wider, "Run it again on one to see small gains.")]
