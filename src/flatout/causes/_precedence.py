"""Which findings are reported: a general cause gives way to a special one that accounts for its cost.

The special causes declare it (`explains` and `replaces` of `Cause`); this applies both, in this order:

1. *Replaced* findings are dropped: a cause that is worth a change and `replaces` them was found. A finding that was
   itself replaced replaces nothing, so the special causes are taken first.
2. *Explained* findings are dropped: the causes that name them in `explains` have at least half of their cost together.
   Here a finding that is explained still explains others: the same waiting time is often seen by several causes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from flatout.causes._spec import WORTH, Cause
from flatout.model.case import Finding
from flatout.plugins import in_order

MOST = 0.5
"""Share of a finding's cost that has to be explained before it is left out."""


@dataclass(frozen=True)
class Detected:
    """A finding, and the name of the detector that yielded it (empty for the only one of its cause)."""

    finding: Finding
    detector: str = ""

    @property
    def cause(self) -> str:
        return self.finding.cause

    @property
    def cost_share(self) -> float:
        return self.finding.cost_share or 0.0

    def is_named_in(self, names: Iterable[str]) -> bool:
        return not {self.cause, f"{self.cause}/{self.detector}"}.isdisjoint(names)


def reported(detected: Sequence[Detected], causes: Mapping[str, Cause]) -> list[Finding]:
    """The findings that no special cause replaces or explains, in their order."""
    kept = _without_replaced(detected, causes)
    return [item.finding for item in kept if not _is_explained(item, kept, causes)]


def _without_replaced(detected: Sequence[Detected], causes: Mapping[str, Cause]) -> list[Detected]:
    special_first = in_order(_replaced_by(causes))
    kept: list[Detected] = []
    for item in sorted(detected, key=lambda item: special_first.index(item.cause)):
        if not any(
            other.cost_share >= WORTH and item.is_named_in(causes[other.cause].replaces)
            for other in kept
            if other.cause != item.cause and _may_account(other, item, causes)
        ):
            kept.append(item)
    return [item for item in detected if item in kept]


def _replaced_by(causes: Mapping[str, Cause]) -> dict[str, list[str]]:
    """For each cause those that replace it, or findings of one of its detectors."""
    targets = {name: {target.partition("/")[0] for target in spec.replaces} for name, spec in causes.items()}
    return {name: [other for other in causes if name in targets[other]] for name in causes}


def _is_explained(item: Detected, detected: Sequence[Detected], causes: Mapping[str, Cause]) -> bool:
    explained = sum(
        other.cost_share
        for other in detected
        if item.is_named_in(causes[other.cause].explains) and _may_account(other, item, causes)
    )
    return explained > 0 and explained >= MOST * item.cost_share


def _may_account(other: Detected, item: Detected, causes: Mapping[str, Cause]) -> bool:
    """What costs the run outside of its steps is no reason for what a step costs. But the beginnings of epochs, where
    the input is waited for, are told as a part of both."""
    outside = other.finding.of == "run" and item.finding.of == "step"
    return not outside or causes[other.cause].group == "input"
