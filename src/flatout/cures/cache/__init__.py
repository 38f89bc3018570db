"""Keeps in memory what the pipeline computes again, with the same result, in every epoch.

## What it does
Puts a cache behind the longest part of each pipeline that gives the same elements in every pass: everything before
the first shuffle, repeat, or map that draws random numbers or reads a variable. With a `batch` in that part, whole
batches are kept. Pipelines whose first part costs nothing (arrays, ranges) are left alone. What the cache may hold is
a third of the free memory; beyond that it keeps what it has, and the rest of each epoch is computed as before.

## When it pays
From the second epoch on, where reading, decoding or Python code takes the time. In a JPEG pipeline on one machine
warm epochs became 3.45 times as fast. Filling it makes the first epoch a little slower, so trials begin to measure
when it is full.

## What it changes
Exact, as long as the cached part gives the same elements each time. Python code (a generator, `py_function`,
`numpy_function`) is asked: once the cache is full, a trial makes a second pass for some seconds and compares each
element. Where one differs, because random numbers are drawn or data change, the trial has failed. Losses and weights
are compared besides.

## In the source
```python
dataset = dataset.map(read_and_decode).cache().shuffle(2000).batch(64)
```
Before the shuffle and before anything random.
"""

from __future__ import annotations

from flatout.cures import _pipelines
from flatout.cures._spec import Cure
from flatout.model.case import Case, Pipeline, Stage
from flatout.pipeline import caching

CHANGING = ("Shuffle", "ShuffleAndRepeat", "Repeat")
"""Stages behind which the order or the number of the elements changes."""


def skip(case: Case) -> str | None:
    if case.pipelines and not any(steady_work(pipeline) for pipeline in case.pipelines):
        return "nothing that costs time stands before the first shuffle, repeat or random map"
    return _pipelines.no_wait(case)


def steady_work(pipeline: Pipeline) -> list[Stage]:
    """The stages that a cache would save: they yield the same elements in every epoch, and do some work.

    Those behind the last cache, and before the first shuffle, repeat, or function whose state may change its results.
    """
    steady: list[Stage] = []
    for stage in pipeline.stages:
        if stage.name in CHANGING or stage.stateful not in (None, *caching.HARMLESS):
            break
        steady = [] if stage.name == "Cache" else [*steady, stage]
    works = any(stage.name not in caching.FREE for stage in steady)
    is_keras = all(stage.detail.by_keras for stage in pipeline.stages)
    return steady if works and not is_keras else []


CURE = Cure(
    does="cache the dataset in memory",
    equivalence="exact",
    side="input",
    # It keeps what the others have made.
    after=("threadpool",),
    skip=skip,
    fills=True,
)
