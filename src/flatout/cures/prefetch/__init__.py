"""The input runs ahead of the step, with a prefetch of tunable size at the end.

## What it does
Adds `prefetch(tf.data.AUTOTUNE)` at the end of each pipeline that has none and gets none: TensorFlow adds one by
itself unless the options of the dataset switch that off. A prefetch of zero or one elements becomes tunable.

## When it pays
When input and step take turns. With 10 ms on each side, on one machine, a step took 21.8 ms without any prefetch and
11.4 ms with one. Where the input is slower than the step even when it runs all the time, the gain is the part that
overlaps.

## What it changes
Exact: the same elements in the same order. A few more batches are held in memory.

## In the source
```python
dataset = dataset.batch(64).prefetch(tf.data.AUTOTUNE)
```
"""

from __future__ import annotations

from flatout.cures import _pipelines
from flatout.cures._spec import Cure
from flatout.model.case import Case

FORBID = (
    "autotune.enabled",
    "experimental_optimization.apply_default_optimizations",
    "experimental_optimization.inject_prefetch",
)
"""Options that keep TensorFlow from adding a prefetch where one of them is off."""
AHEAD = ("Parallel", "Prefetch", "MapAndBatch")
"""Last stages with a buffer of their own, behind which TensorFlow adds no prefetch."""
SMALL = 1
"""The largest buffer that is made tunable."""


def skip(case: Case) -> str | None:
    switched_off = any(pipeline.options.is_off(switch) for pipeline in case.pipelines for switch in FORBID)
    small = any(stage.name == "Prefetch" and is_small(stage.buffer or "") for _, _, stage in _pipelines.stages(case))
    if case.pipelines and not switched_off and not small:
        return "the pipelines have a prefetch at the end, their own or the one that TensorFlow adds"
    return _pipelines.no_wait(case)


def is_small(buffer: str) -> bool:
    return buffer.isdigit() and int(buffer) <= SMALL


CURE = Cure(
    does="prefetch at the end of the pipeline",
    equivalence="exact",
    side="input",
    # It belongs behind the last stage.
    after=("cache",),
    skip=skip,
)
