"""`--compress search`: how far a model can be compressed and still be good enough.

    original → half of its FLOPs → a quarter → …      each pruned from the one before, and taught by the original
                                         ↳ int8       of the smallest that are good enough; trained where rounding hurts

Where a step goes too far, half of it is tried. The samples that decide here are not those of the race that follows:
what comes out is judged once more, on samples that nothing was chosen by.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flatout.model.errors import CompressionFailed, CompressionRefused, Internal
from flatout.optimize.compress import cost, training
from flatout.optimize.compress.distill import distill
from flatout.optimize.compress.prune import prune
from flatout.optimize.compress.quantize import quantize
from flatout.optimize.compress.stages import Means

SEARCH = "search"
"""What stands in the place of the stages."""
STEP = 0.5
"""Share of the FLOPs that a step leaves."""
LEAST = 0.01
"""Share of the original's FLOPs below which nothing is tried."""
ROUNDED = 2
"""How many of the smallest are rounded to int8."""


@dataclass(frozen=True)
class Found:
    """A model on the way, and how much worse than the original it is."""

    stages: str
    """In the words of `--compress`; empty for the original."""
    model: Any
    share: float
    """Of the original's FLOPs."""
    drop: float
    int8: bool = False

    def __str__(self) -> str:
        change = f"{self.drop:.4g} worse" if self.drop > 0 else f"{-self.drop:.4g} better"
        return f"{self.stages or 'as it is'}: {self.share:.0%} of the FLOPs, {change} than the original"


class OutOfTime(Internal):
    pass


@dataclass
class Search:
    means: Means
    drop: Callable[[Any], float]
    """How much worse than the original a model is, in the user's metric."""
    allowed: float
    deadline: float
    say: Callable[[str], None]
    longest: float = 0.0
    """Seconds that the longest training took so far."""

    def run(self) -> list[Found]:
        """What is good enough, the smallest first; each in float and, where rounding did not hurt too much, in int8."""
        whole = Found("", self.means.original, 1.0, 0.0)
        good = [whole]
        try:
            self._descend(good)
        except OutOfTime:
            self.say("there is no time to go further down: give more with --budget")
        smallest = list(reversed(good))
        floats = [one for one in smallest[:ROUNDED] if one is not whole]
        return [*self._rounded(smallest), *floats]

    def _descend(self, good: list[Found]) -> None:
        """Smaller and smaller, as long as it is good enough."""
        share = STEP
        while share >= LEAST:
            found = self._pruned(good[-1], share)
            if found is not None and found.drop <= self.allowed:
                good.append(found)
                share = found.share * STEP
                continue
            if found is not None:  # too far
                between = self._pruned(good[-1], math.sqrt(good[-1].share * share))
                if between is not None and between.drop <= self.allowed:
                    good.append(between)
            return

    def _pruned(self, before: Found, share: float) -> Found | None:
        """Down to this share of the original's FLOPs; None where the model cannot be made so small."""
        stages = f"prune={share:.2g}"
        try:
            made = prune(before.model, flops=share / before.share, checkpoint=self._place(stages, before.model))
            if self.means.train is not None:
                stages += ",distill"
                made = self._trained(lambda: self._taught(made.model, stages))
        except (CompressionRefused, CompressionFailed) as error:
            self.say(f"{stages}: {error}")
            return None
        left = cost.of(made.model)[1] / max(cost.of(self.means.original)[1], 1.0)
        return self._judged(Found(stages, made.model, left, 0.0))

    def _taught(self, model: Any, stages: str) -> Any:
        assert self.means.train is not None
        place = self._place(stages, model)
        return distill(self.means.original, model, train=self.means.train, checkpoint=place)

    def _rounded(self, smallest: list[Found]) -> list[Found]:
        """In int8: as many as are wanted of those that stay good enough."""
        rounded: list[Found] = []
        for one in smallest:
            if len(rounded) == ROUNDED:
                break
            try:
                found = self._judged(self._int8(one, trained=False))
                if found.drop > self.allowed and self.means.train is not None:
                    found = self._judged(self._trained(functools.partial(self._int8, one, trained=True)))
            except (CompressionRefused, CompressionFailed) as error:
                self.say(f"{one.stages or 'the original'} in int8: {error}")
                continue
            except OutOfTime:
                continue  # a larger one may do without training
            if found.drop <= self.allowed:
                rounded.append(found)
        return rounded

    def _int8(self, one: Found, trained: bool) -> Found:
        stages = f"{one.stages},int8".lstrip(",") + ("-trained" if trained else "")
        train = self.means.train if trained else None
        place = self._place(stages, one.model)
        teacher = self.means.original
        made = quantize(one.model, self.means.inputs, train=train, teacher=teacher, checkpoint=place)
        return Found(stages, made.model, one.share, 0.0, int8=True)

    def _trained(self, work: Callable[[], Any]) -> Any:
        """Whatever trains: not begun where it would take longer than there is time. The first is always made."""
        began = time.monotonic()
        if self.longest and began + self.longest > self.deadline:
            raise OutOfTime
        made = work()
        self.longest = max(self.longest, time.monotonic() - began)
        return made

    def _judged(self, found: Found) -> Found:
        judged = replace(found, drop=self.drop(found.model))
        self.say(str(judged) + ("" if judged.drop <= self.allowed else f"; {self.allowed:.4g} is allowed"))
        return judged

    def _place(self, stages: str, model: Any) -> Path | None:
        """For what is made of this very model: a search with other limits comes by the same stages from elsewhere."""
        if self.means.checkpoint is None:
            return None
        mark = training.fingerprint(model, [stages, training.fingerprint(self.means.original, [])])
        return self.means.checkpoint / f"{file_name(stages)}-{mark[:12]}"


def file_name(stages: str) -> str:
    return stages.replace("=", "-").replace(",", "-").replace(" ", "")
