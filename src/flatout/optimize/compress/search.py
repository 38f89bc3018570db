"""`--compress search`: finds how far a model can be compressed and still be good enough.

    original → half of its FLOPs → a quarter → …      each pruned from the one before, and distilled from the original
                                         ↳ int8       of the smallest that are good enough; trained if rounding costs
                                                      too much

Where a step goes too far, half of it is tried. The samples that decide here are not those of the race that follows: the
race checks the result on samples that were not used to choose it.
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
from flatout.optimize.compress import training
from flatout.optimize.compress.distill import distill
from flatout.optimize.compress.prune import prune
from flatout.optimize.compress.quantize import quantize
from flatout.optimize.compress.stages import Resources
from flatout.optimize.compress.structure import cost

STEP = 0.5
"""Share of the FLOPs that a step leaves."""
SMALLEST_SHARE = 0.01
"""Share of the original's FLOPs below which nothing is tried."""
INT8_MODELS = 2
"""How many of the smallest models are rounded to int8."""


@dataclass(frozen=True)
class Found:
    """A model that was tried, and how much worse than the original it is."""

    stages: str
    """As `--compress` takes them; empty for the original."""
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
    resources: Resources
    drop: Callable[[Any], float]
    """How much worse than the original a model is, in the user's metric."""
    allowed: float
    deadline: float
    say: Callable[[str], None]
    longest_training: float = 0.0
    """Seconds."""

    def run(self) -> list[Found]:
        """The models that are good enough, the smallest first: in int8 where that is good enough, and in float."""
        whole = Found("", self.resources.original, 1.0, 0.0)
        good = [whole]
        try:
            self._descend(good)
        except OutOfTime:
            self.say("no time left to try smaller models: give more with --budget")
        smallest = list(reversed(good))
        floats = [one for one in smallest[:INT8_MODELS] if one is not whole]
        return [*self._quantize_smallest(smallest), *floats]

    def _descend(self, good: list[Found]) -> None:
        """Try smaller and smaller models, as long as they are good enough."""
        share = STEP
        while share >= SMALLEST_SHARE:
            found = self._prune(good[-1], share)
            if found is not None and found.drop <= self.allowed:
                good.append(found)
                share = found.share * STEP
                continue
            if found is not None:  # a step too far
                between = self._prune(good[-1], math.sqrt(good[-1].share * share))
                if between is not None and between.drop <= self.allowed:
                    good.append(between)
            return

    def _prune(self, before: Found, share: float) -> Found | None:
        """The model at this share of the original's FLOPs; None where it cannot be made so small."""
        stages = f"prune={share:.2g}"
        try:
            made = prune(before.model, flops=share / before.share, checkpoint=self._checkpoint(stages, before.model))
            if self.resources.train is not None:
                stages += ",distill"
                made = self._timed(lambda: self._distill(made.model, stages))
        except (CompressionRefused, CompressionFailed) as error:
            self.say(f"{stages}: {error}")
            return None
        left = cost.of(made.model)[1] / max(cost.of(self.resources.original)[1], 1.0)
        return self._evaluate(Found(stages, made.model, left, 0.0))

    def _distill(self, model: Any, stages: str) -> Any:
        assert self.resources.train is not None
        checkpoint = self._checkpoint(stages, model)
        return distill(self.resources.original, model, train=self.resources.train, checkpoint=checkpoint)

    def _quantize_smallest(self, smallest: list[Found]) -> list[Found]:
        """In int8: the first `INT8_MODELS` that stay good enough."""
        rounded: list[Found] = []
        for one in smallest:
            if len(rounded) == INT8_MODELS:
                break
            try:
                found = self._evaluate(self._int8(one, trained=False))
                if found.drop > self.allowed and self.resources.train is not None:
                    found = self._evaluate(self._timed(functools.partial(self._int8, one, trained=True)))
            except (CompressionRefused, CompressionFailed) as error:
                self.say(f"{one.stages or 'the original'} in int8: {error}")
                continue
            except OutOfTime:
                continue  # a larger model may not need training
            if found.drop <= self.allowed:
                rounded.append(found)
        return rounded

    def _int8(self, one: Found, trained: bool) -> Found:
        stages = f"{one.stages},int8".lstrip(",") + ("-trained" if trained else "")
        train = self.resources.train if trained else None
        checkpoint = self._checkpoint(stages, one.model)
        teacher = self.resources.original
        made = quantize(one.model, self.resources.inputs, train=train, teacher=teacher, checkpoint=checkpoint)
        return Found(stages, made.model, one.share, 0.0, int8=True)

    def _timed(self, train: Callable[[], Any]) -> Any:
        """Run a training, unless the longest one so far would not fit into the time left. The first always runs."""
        began = time.monotonic()
        if self.longest_training and began + self.longest_training > self.deadline:
            raise OutOfTime
        made = train()
        self.longest_training = max(self.longest_training, time.monotonic() - began)
        return made

    def _evaluate(self, found: Found) -> Found:
        evaluated = replace(found, drop=self.drop(found.model))
        self.say(str(evaluated) + ("" if evaluated.drop <= self.allowed else f"; {self.allowed:.4g} is allowed"))
        return evaluated

    def _checkpoint(self, stages: str, model: Any) -> Path | None:
        """A directory for this very model: searches with other limits reach the same stages from other models."""
        if self.resources.checkpoint is None:
            return None
        fingerprint = training.fingerprint(model, [stages, training.fingerprint(self.resources.original, [])])
        return self.resources.checkpoint / f"{file_name(stages)}-{fingerprint[:12]}"


def file_name(stages: str) -> str:
    return stages.replace("=", "-").replace(",", "-").replace(" ", "")
