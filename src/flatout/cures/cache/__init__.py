"""Keeps in memory what the pipeline computes anew, and alike, in every epoch.

## What it does
Puts a cache behind the longest part of each pipeline that gives the same elements in every pass: everything
before the first shuffle, repeat, or map that draws random numbers or reads a variable. With a `batch` in
that part, whole batches are kept. Pipelines whose first part costs nothing (arrays, ranges) are left alone.
What the cache may hold is a third of the free memory; beyond that it keeps what it has, and the rest of
each epoch is computed as before.

## When it pays
From the second epoch on, where reading, decoding or Python code takes the time. In a JPEG pipeline on one
machine warm epochs became 3.45 times as fast. The first epoch pays a little for filling it, so that trials
begin to measure when it is full.

## What it changes
Exact, as long as the cached part gives the same elements each time. Python code (a generator,
`py_function`, `numpy_function`) is taken to do so, and a note says so: the losses show where it draws
random numbers or reads data that change.

## In the source
```python
dataset = dataset.map(read_and_decode).cache().shuffle(2000).batch(64)
```
Before the shuffle and before anything random.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures import _input
from flatout.model.case import Case, Pipeline
from flatout.observe.injection import Injection
from flatout.pipeline import caching

EQUIVALENCE = "exact"
SIDE = "input"
FILLS = True

NEVER_COMPLETE = 5
"""Iterators of which none has reached the end: the program reads a part of its data only, and no cache gets full."""


def skip(case: Case) -> str | None:
    if case.pipelines and not any(_costs_the_same_again(pipeline) for pipeline in case.pipelines):
        return "nothing that costs time stands before the first shuffle, repeat or random map"
    return _input.no_wait(case)


def _costs_the_same_again(pipeline: Pipeline) -> bool:
    """Whether there is work before the elements, or their order, begin to differ from one epoch to the next."""
    costs = False
    for stage in pipeline.stages:
        if stage.name in ("Shuffle", "Repeat") or stage.stateful not in (None, *caching.HARMLESS):
            break
        costs = stage.name != "Cache" and (costs or stage.name not in caching.FREE)
    return costs and not all(stage.detail.get("by") == "keras" for stage in pipeline.stages)


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    from flatout.observe import stages
    from flatout.pipeline import iteration, recipes

    promised = [0]

    def rewrite(dataset: Any, iterated: iteration.Iterated) -> tuple[Any, str] | None:
        if stages.from_arrays(dataset):
            return None
        stage, reason = caching.last_cacheable(dataset)
        if stage is None:
            injection.note(f"nothing to cache: {reason}")
            return None
        cached = getattr(stage, "_flatout_cached", None)  # a program may build on one stage anew in each epoch
        if cached is None:
            limit = max(caching.memory_limit() - promised[0], 0)
            size = caching.known_bytes(stage)
            if size is not None and size > limit:
                injection.note(f"{stages.place(stage)}: {_mib(size)} to keep, {_mib(limit)} to keep them in")
                return None
            promised[0] += size or 0
            cached = stage._flatout_cached = caching.Cached(stage, limit)
        result = recipes.rebuild(dataset, recipes.exchange(stage, recipes.stands_for(cached.dataset, stage)))
        injection.ready.append(lambda: _full(injection, cached, iterated))
        if stages.runs_python(stage):
            injection.note("Python code stands before the cache: it is taken to give the same elements in each epoch")
        return result, f"a cache behind {stages.kind(stage).lower()} at {stages.place(stage)}"

    iteration.rewrite_with(injection, rewrite)


def _full(injection: Injection, cached: Any, iterated: Any) -> bool:
    if cached.passes:
        if cached.overflown:
            injection.note(f"the cache holds only what fits into {_mib(cached.limit)}, a third of the free memory")
        return True
    if iterated.opened >= NEVER_COMPLETE:
        injection.note("the program never reads its data to the end, so the cache does not get full")
        return True
    return not iterated.alive  # the program only had a look at it: nobody fills this cache


def _mib(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"
