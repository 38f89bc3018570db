"""`vectorize-map` on a dataset: maps before a batch work on whole batches behind it. Parsing of records gains most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flatout.observe import stages
from flatout.pipeline import recipes, vectorization
from flatout.pipeline.rewriting import Context, Proposal, Refused


@dataclass(frozen=True)
class Vectorized:
    proposal: Proposal | None
    left_alone: tuple[str, ...]
    """Maps that stay as they are, and why."""
    rounded: tuple[str, ...]
    """Maps that agree within rounding, not to the bit."""


def rewrite(dataset: Any, context: Context) -> Proposal | None:
    found = on_batches(dataset, again=True, may_round="reassociated" in context.allow)
    if found.proposal is None and found.left_alone:
        raise Refused("; ".join(found.left_alone))
    return found.proposal


def on_batches(dataset: Any, *, again: bool, may_round: bool) -> Vectorized:
    """All maps before a batch that give the same on batches. `again`: code with side effects may run once more."""
    moved, left_alone, rounded, forms = [], [], [], []
    for late in vectorization.late_batches(dataset):
        name = f"the map at {stages.location(late.maps[-1])}"
        try:
            batches, exact = vectorization.vectorized(late, again)
        except vectorization.Unlike as unlike:
            left_alone.append(f"{name} left alone: {unlike}")
            continue
        if not exact and not may_round:
            left_alone.append(f"{name} left alone: it rounds differently on batches")
            continue
        dataset = recipes.rebuild(dataset, recipes.exchange(late.batch, batches))
        moved.append(stages.location(late.maps[-1]))
        forms.append(str(batches._flatout_form))
        if not exact:
            rounded.append(f"{name} agrees within rounding, not to the bit (reassociated)")
    what = f"the map at {' and '.join(moved)} works on whole batches"
    proposal = Proposal(dataset, what, setting=max(forms)) if moved else None
    return Vectorized(proposal, tuple(left_alone), tuple(rounded))
