"""`free-input` in a running program."""

from __future__ import annotations

import time
from types import ModuleType
from typing import Any

from flatout.cures._spec import Hooks
from flatout.observe import stages
from flatout.observe.injection import Injection
from flatout.pipeline import iteration, recipes
from flatout.pipeline.rewriting import Proposal

COUNTING_SECONDS = 5.0
MANY = 1_000_000
"""Elements of an epoch whose end was not seen while counting."""


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    tensorflow: Any = module

    def rewrite(dataset: Any, _: iteration.Iterated) -> Proposal | None:
        iterator = iter(dataset)
        first = next(iterator, None)
        if first is None:
            return None
        count = int(dataset.cardinality())
        if count == tensorflow.data.UNKNOWN_CARDINALITY:
            count = _count(iterator)
            if count == MANY:
                injection.note(f"an epoch of {stages.location(dataset)} is longer than could be counted")
        free = tensorflow.data.Dataset.from_tensors(first).repeat(None if count < 0 else count)
        # The batch is of one size now; the program is to see the shapes that it knew.
        variant = tensorflow.data.experimental.to_variant(free)
        result = tensorflow.data.experimental.from_variant(variant, dataset.element_spec)
        what = f"one batch again and again in place of {stages.location(dataset)}"
        return Proposal(recipes.stands_for(result, dataset), what)

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


HOOKS = Hooks(tensorflow=on_tensorflow)
