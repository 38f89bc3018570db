"""Nothing is computed: the input alone runs, to show how fast the steps could be at best.

## What it does
After the first few steps a call of the training function gives back its last result at once. The input is still
taken from the pipeline. Eager steps are not touched.

## When it pays
Never by itself: it is a bound. When steps without computing take as long as with it, the input is what to cure,
and no lever on computing can help.

## What it changes
Bound: the weights stand still.

## In the source
There is no edit.
"""

from __future__ import annotations

from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case


def skip(case: Case) -> str | None:
    kind = queries.step_kind(case)
    if kind == "fit":
        return "the model runs eagerly" if queries.runs_eagerly(case) else None
    return None if kind == "train-function" else "the steps are not those of a traced function that trains"


CURE = Cure(equivalence="bound", side="compute", conflicts=("function",), skip=skip)
