"""No cure but a bound: every step gets the first batch again, at no cost.

## What it does
The first element of each dataset that the program iterates is kept and given again, as often as the dataset
would have given an element. Where that number is not known, the elements are counted once, for a few
seconds at most.

## When it pays
Never, as a change: the model learns nothing from one batch. It tells what curing the input could bring at
best. When the step is hardly faster with an input that costs nothing, no lever of the input is worth a try.

## What it changes
Everything: a bound only, never part of a patch.

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
    equivalence="bound",
    side="input",
    # It takes the first batch of the pipeline that is left.
    after=("prefetch",),
    skip=skip,
)
