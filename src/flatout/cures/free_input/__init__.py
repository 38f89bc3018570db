"""No cure but a bound: every step gets the first batch again, which costs nothing.

## What it does
The first element of each dataset that the program iterates is kept and repeated, as often as the dataset would have
yielded an element. If that number is unknown, the elements are counted once, for a few seconds at most.

## When it pays
Never by itself: the model learns nothing from one batch. It shows what a faster input could gain at most. If the step
is hardly faster with an input that costs nothing, no cure of the input is worth a trial.

## What it changes
Bound only: the model sees one batch. Never part of a patch.

## In the source
There is no edit for it.
"""

from __future__ import annotations

from flatout.cures import _pipelines
from flatout.cures._spec import Cure
from flatout.model.case import Case


def skip(case: Case) -> str | None:
    return _pipelines.no_wait(case)


CURE = Cure(
    does="an input that costs nothing",
    equivalence="bound",
    side="input",
    # It takes the first batch of the pipeline that is left.
    after=("prefetch",),
    skip=skip,
)
