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

import time
from types import ModuleType
from typing import Any

from flatout.cures import _input
from flatout.model.case import Case
from flatout.observe.injection import Injection

EQUIVALENCE = "bound"
SIDE = "input"

COUNTING_SECONDS = 5.0
MANY = 1_000_000
"""Elements of an epoch whose end was not seen while counting."""


def skip(case: Case) -> str | None:
    return _input.no_wait(case)


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    from flatout.observe import stages
    from flatout.pipeline import iteration, recipes

    tensorflow: Any = module

    def rewrite(dataset: Any, _: iteration.Iterated) -> tuple[Any, str] | None:
        iterator = iter(dataset)
        first = next(iterator, None)
        if first is None:
            return None
        count = int(dataset.cardinality())
        if count == tensorflow.data.UNKNOWN_CARDINALITY:
            count = _count(iterator)
            if count == MANY:
                injection.note(f"an epoch of {stages.place(dataset)} is longer than could be counted")
        free = tensorflow.data.Dataset.from_tensors(first).repeat(None if count < 0 else count)
        # The batch is of one size now; the program is to see the shapes that it knew.
        variant = tensorflow.data.experimental.to_variant(free)
        result = tensorflow.data.experimental.from_variant(variant, dataset.element_spec)
        return recipes.stands_for(result, dataset), f"one batch again and again in place of {stages.place(dataset)}"

    iteration.rewrite_with(injection, rewrite)


def _count(iterator: Any) -> int:
    """All elements of which one was taken already; `MANY` where time is up before the end."""
    until = time.perf_counter() + COUNTING_SECONDS
    count = 1
    for _ in iterator:
        count += 1
        if time.perf_counter() > until:
            return MANY
    return count
