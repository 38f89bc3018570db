"""How many steps whole runs make, with a change and without it, why they differ where they do, and how much a step is.

A program that plays a game makes another number of steps each time. That it is chance is shown by runs of the program
as it is: with runs of both sides in one heap, a change that leaves out half of the steps would look like chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from flatout.cures import find
from flatout.measure.parity.lacking import Amount, beyond_chance
from flatout.model.case import WholeRun
from flatout.model.levers import parse
from flatout.trial.whole_run import Run

SAME = 1.02
"""Most steps over fewest of runs that are taken for equally long."""


@dataclass(frozen=True)
class Lengths:
    """How many steps the runs of each side make; none where they are counted by different things."""

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    @classmethod
    def of(cls, originals: list[Run], changes: list[Run]) -> Lengths:
        runs = [*originals, *changes]
        if len({one.rank for one in runs}) > 1 or not all(one.steps for one in runs):
            return cls()
        return cls(tuple(one.steps for one in originals), tuple(one.steps for one in changes))

    @property
    def why(self) -> Literal["same", "chance", "change", "not-known"]:
        """Why they differ, where they do. That chance makes so much is shown by runs of the original alone; that the
        change does, by several runs of each side that agree."""
        if not self.before or alike((*self.before, *self.after)):
            return "same"
        original = [Amount(steps) for steps in self.before]
        if not alike(self.before) and not any(beyond_chance(original, Amount(steps), SAME - 1) for steps in self.after):
            return "chance"
        several = len(self.before) > 1
        return "change" if several and alike(self.before) and alike(self.after) else "not-known"

    def told(self) -> str:
        if self.why == "same":
            return ""
        if self.why == "chance":
            return f"by chance its runs make between {min(self.before)} and {max(self.before)} steps"
        sides = [" and ".join(map(str, sorted({*side}))) for side in (self.after, self.before)]
        told = f"its runs make {sides[0]} steps, where they made {sides[1]}"
        return told if self.why == "change" else f"{told}, and nothing shows that chance makes so much"


def alike(steps: Sequence[int]) -> bool:
    return max(steps) <= SAME * min(steps)


def samples_seen(levers: Sequence[str], found: WholeRun) -> float | None:
    """How many times as many samples the changed runs see as the program does; None: that is not known."""
    specs = ((find(name).spec, value) for name, value in map(parse, levers))
    factors = [spec.samples(value) for spec, value in specs if spec.samples is not None]
    if not factors:
        return 1.0
    return math.prod(factors) * found.steps / found.steps_before if found.steps_before else None
