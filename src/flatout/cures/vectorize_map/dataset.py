"""Maps before a batch work on whole batches behind it, compared to the bit; parsing of records gains most."""

from __future__ import annotations

from typing import Any

from flatout.cures._dataset import Proposal, Room, Unfit
from flatout.observe import stages
from flatout.pipeline import recipes, vectorizing

NAME = "vectorize-map"
EQUIVALENCE = "exact"


def rewrite(dataset: Any, room: Room) -> Proposal | None:
    places, unlike, forms = [], [], []
    for late in vectorizing.late_batches(dataset):
        try:
            batches, exact = vectorizing.vectorized(late, again=True)
        except vectorizing.Unlike as error:
            unlike.append(f"the map at {stages.place(late.maps[-1])} does not work on batches: {error}")
            continue
        if not exact and "reassociated" not in room.allow:
            unlike.append(f"the map at {stages.place(late.maps[-1])} rounds otherwise on batches")
            continue
        dataset = recipes.rebuild(dataset, recipes.exchange(late.batch, batches))
        places.append(stages.place(late.maps[-1]))
        forms.append(str(batches._flatout_form))
    if not places:
        if unlike:
            raise Unfit("; ".join(unlike))
        return None
    return Proposal(dataset, f"the map at {' and '.join(places)} works on whole batches", setting=max(forms))
