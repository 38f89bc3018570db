"""No cure but a bound: steps compute nothing, which shows how fast the input alone is.

## What it does
After the first few steps a call of the training function returns its last result at once. The input is still read
from the pipeline. Eager steps are not changed.

## When it pays
Never by itself: it is a bound. If steps take as long without computing as with it, the input is the bottleneck, and
no cure of the computation can help.

## What it changes
Bound only: the weights do not change.

## In the source
There is no edit for it.
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


CURE = Cure(does="steps that compute nothing", equivalence="bound", side="compute", conflicts=("function",), skip=skip)
