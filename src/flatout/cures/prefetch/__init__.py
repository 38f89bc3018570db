"""Lets the input run ahead of the step with a prefetch of tunable size at the end.

## What it does
Adds `prefetch(tf.data.AUTOTUNE)` at the end of each pipeline that has none and gets none: TensorFlow adds
one by itself unless the options of the dataset forbid it. A prefetch of no or one element becomes a tunable
one.

## When it pays
When input and step take turns. With 10 ms on each side, on one machine, a step took 21.8 ms without any
prefetch and 11.4 ms with one. Where the input is slower than the step even when it runs all the time, the
gain is what they can overlap.

## What it changes
Exact: the same elements in the same order. A few more batches are held in memory.

## In the source
```python
dataset = dataset.batch(64).prefetch(tf.data.AUTOTUNE)
```
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures import _input
from flatout.cures.autotune import value_of
from flatout.model.case import Case
from flatout.observe.injection import Injection

EQUIVALENCE = "exact"
SIDE = "input"

FORBID = (
    "autotune.enabled",
    "experimental_optimization.apply_default_optimizations",
    "experimental_optimization.inject_prefetch",
)
AHEAD = ("Parallel", "Prefetch", "MapAndBatch")
"""Last stages with a buffer of their own, behind which TensorFlow adds no prefetch."""
SMALL = 1


def skip(case: Case) -> str | None:
    switched_off = any(pipeline.options.get(switch) is False for pipeline in case.pipelines for switch in FORBID)
    small = any(stage.name == "Prefetch" and stage.buffer in ("0", "1") for _, _, stage in _input.stages(case))
    if case.pipelines and not switched_off and not small:
        return "the pipelines have a prefetch at the end, their own or the one that TensorFlow adds"
    return _input.no_wait(case)


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    from flatout.observe import stages
    from flatout.pipeline import iteration, recipes

    tensorflow: Any = module

    def rewrite(dataset: Any, _: iteration.Iterated) -> tuple[Any, str] | None:
        if stages.from_arrays(dataset):
            return None
        automatic = tensorflow.data.AUTOTUNE
        last = next(stage for stage in recipes.main_line(dataset) if stages.kind(stage) != "Options")
        if stages.kind(last) == "Prefetch":
            buffer = stages.setting(last, "_buffer_size")
            if buffer is None or buffer > SMALL or buffer == automatic or recipes.recipe_of(last) is None:
                return None
            tuned = recipes.replay(last, {}, {"buffer_size": automatic})
            what = f"the prefetch of {buffer} at {stages.place(last)} made tunable"
            return recipes.rebuild(dataset, recipes.exchange(last, tuned)), what
        injects = not any(value_of(dataset.options(), switch) is False for switch in FORBID)
        if injects or stages.kind(last).startswith(AHEAD):
            return None
        return dataset.prefetch(automatic), f"a prefetch added behind {stages.place(last)}"

    iteration.rewrite_with(injection, rewrite)
