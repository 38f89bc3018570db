"""A shuffle or prefetch buffer holds far more than it needs to, and a shuffle must fill before any step.

## What it is
`shuffle(n)` keeps n elements in memory and gives out none before it has read n (or all there are).
`prefetch(n)` after `batch` keeps n whole batches.

## Why it costs
The start: the first element of each epoch waits for the buffer to fill, with an idle accelerator, and again
in every epoch unless `repeat` comes before the shuffle. The memory: 50,000 decoded 224×224 colour images as
float32 are 30 GB. Once the machine swaps, every step pays.

## How it looks
```python
dataset = (
    tf.data.Dataset.from_tensor_slices(paths)
    .map(decode)               # from here on each element is a 600 KB image
    .shuffle(50_000)           # ... and 50,000 of them are read before the first step
    .batch(128)
    .prefetch(200)             # 200 batches of 77 MB
)
```

## The cure
Shuffle while elements are still small, and let TensorFlow choose the prefetch:
```python
dataset = (
    tf.data.Dataset.from_tensor_slices(paths)
    .shuffle(len(paths))       # file names: a perfect shuffle for a few megabytes
    .map(decode)
    .batch(128)
    .prefetch(tf.data.AUTOTUNE)
)
```
- A smaller prefetch: exact. A shuffle moved in front of maps without state: exact, too, as it draws places,
  not values. Moved further, in front of a `repeat` or an `interleave`, it is **semantic**: another order.
- A smaller shuffle buffer is **semantic**: elements mix less. Data sorted by class need a large one.

No lever does this: what it saves is memory, and the wait before the first step; the steps themselves, which
`tune` compares, take as long as before.

## When it is not worth it
When the elements are small numbers and the buffer fills within a second, a large shuffle is right as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix, Pipeline, Stage
from flatout.model.evidence.steps import EpochStart
from flatout.source.analysis import datasets
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import argument, constant
from flatout.source.repairs import Repair, SetArgument

SLACK = 3.0
"""Filling a buffer may take so many times what its elements cost once it is full: nothing runs beside it yet."""


def slow_epoch_starts(case: Case) -> Iterator[Finding]:
    """The first step of each epoch waits until the buffers are full; the one that takes longest is reported."""
    filled = {
        (number, index): _filling_ms(case, pipeline, index)
        for number, (pipeline, index) in enumerate(_shuffles(case))
        if not _endless(pipeline.stages[index], case)
    }
    pipelines = [pipeline for pipeline, _ in _shuffles(case)]
    for (number, index), filling in sorted(filled.items(), key=lambda item: -item[1])[:1]:
        stage = pipelines[number].stages[index]
        cost = filling if int(stage.buffer or 0) >= _LARGE else 0.0
        found = _finding(case, stage, cost, "the slower first step of each epoch, spread over all steps")
        between = case.run.seconds_of("epoch-start") if case.run is not None and case.steps is not None else 0.0
        if between and case.steps is not None:  # known in seconds of the run, which no step has
            yield from queries.outside_steps(case, found, min(1000 * between, cost * case.steps.count))
        else:
            yield from found


def _filling_ms(case: Case, pipeline: Pipeline, index: int) -> float:
    """What filling a buffer costs, spread over all steps: no more than the epochs begin late, nor than it can take."""
    late = queries.epoch_start_ms(case)
    starts = next((item for item in case.evidence_of(EpochStart) if item.epochs), None)
    made = pipeline.stages[:index]
    if starts is None or any(stage.ms is None for stage in made):
        return late
    stage = pipeline.stages[index]
    size = int(stage.buffer or 0)
    if stage.detail.cardinality is not None and stage.detail.cardinality >= 0:
        size = min(size, stage.detail.cardinality)
    longest = SLACK * size * sum(stage.ms or 0.0 for stage in made)
    return min(late, longest * starts.epochs / max(starts.steps, 1))


def filled_for_nothing(case: Case) -> Iterator[Finding]:
    """Endless data: the elements that are in the buffer at the end were prepared for nothing."""
    for pipeline, index in _shuffles(case):
        stage = pipeline.stages[index]
        if _endless(stage, case) and case.steps is not None:
            upstream = sum(item.ms or 0.0 for item in pipeline.stages[:index])
            used = queries.cpu_use(case)
            total = upstream * int(stage.buffer or 0) / (used.cores if used else 2)
            how = "an estimate: elements in the buffer times what each costs to make"
            spread = min(total / max(case.steps.count, 1), queries.whole_ms(case))
            # It is filled before the first step, or beside the first ones: a cost of the run.
            yield from queries.outside_steps(case, _finding(case, stage, spread, how), total)


def _shuffles(case: Case) -> Iterator[tuple[Pipeline, int]]:
    """The shuffles of the program's own, with a buffer of a fixed size."""
    for pipeline in case.pipelines:
        for index, stage in enumerate(pipeline.stages):
            if stage.name == "Shuffle" and stage.buffer not in (None, "autotuned") and not stage.detail.by_keras:
                yield pipeline, index


def _endless(stage: Stage, case: Case) -> bool:
    return stage.detail.cardinality == -1 and case.steps is not None


def _finding(case: Case, stage: Stage, cost: float, estimate: str) -> Iterator[Finding]:
    held = max(
        stage.detail.buffered_bytes or 0,
        int(stage.buffer or 0) * (stage.detail.element_bytes or 0),
    )
    memory = case.memory.limit_bytes if case.memory is not None else 0
    if not (memory and held > 0.25 * memory) and queries.share(case, cost) < 0.05:
        return
    yield from queries.finding(
        "oversized-buffer",
        case,
        f"A shuffle buffer of {stage.buffer} elements must be filled before the first step can run.",
        cost_ms=cost,
        where=stage.where,
        evidence=[
            queries.number("filling", cost, "ms", "per step, spent on filling it", "tf.data"),
            queries.number("buffer", held, "bytes", "held by the buffer", "tf.data"),
        ],
        fixes=[
            Fix(
                "Use a smaller buffer, or shuffle file names or indices instead of samples.",
                equivalence="semantic",
            )
        ],
        confidence="medium",
        estimate=estimate,
    )


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

_LARGE = 1000
_HUGE = 5000
"""Decoded images that fill gigabytes."""
_MANY_BATCHES = 64


@pattern("shuffle-decoded", calls=("shuffle",), needs=("map",), on_dataset=True)
def _shuffle_decoded(call: ast.Call, site: Site) -> Iterator[Match]:
    """A large shuffle buffer behind the map that decodes images: it holds decoded images."""
    size = constant(argument(call, 0, "buffer_size"))
    if not isinstance(size, int) or size < _LARGE:
        return
    chain = datasets.before(call, site)
    decoder = next((s for s in reversed(chain.stages) if s.name == "map" and datasets.decodes(s.function)), None)
    if decoder is None or not chain.certain or "batch" in chain.names() or "cache" in chain.names():
        return
    yield Match(
        call,
        f"The shuffle buffer holds {size} decoded elements, and all of them must be made before the first step.",
        "Shuffle file names or records before the map that decodes them.",
        "semantic",
        report_at=argument(call, 0, "buffer_size"),
        confidence="medium" if size >= _HUGE else "low",
    )


@pattern("prefetch-in-samples", calls=("prefetch",), among=("batch", "padded_batch"))
def _prefetch_in_samples(call: ast.Call, site: Site) -> Iterator[Match]:
    """`.batch(size).prefetch(size)`: a prefetch after the batch counts batches, not samples."""
    size = argument(call, 0, "buffer_size")
    if size is None:
        return
    chain = datasets.before(call, site)
    batch = chain.last("batch", "padded_batch")
    if batch is None or not chain.certain or "unbatch" in [stage.name for stage in chain.since(batch)]:
        return
    given = argument(batch.call, 0, "batch_size")
    number = constant(size)
    many = isinstance(number, int) and number >= _MANY_BATCHES
    same = given is not None and ast.dump(given) == ast.dump(size) and (not isinstance(number, int) or number > 8)
    if many or same:
        yield Match(
            call,
            f"prefetch counts batches here, not samples: {ast.unparse(size)} whole batches are kept in memory.",
            "Use tf.data.AUTOTUNE, or 2.",
            repair=Repair(
                SetArgument("buffer_size", "tensorflow.data.AUTOTUNE", is_name=True, position=0),
                safe=site.module.is_pinned and site.module.version >= (2, 4),
                assumes="TensorFlow 2.4 or later",
            ),
            report_at=size,
            confidence="medium" if many and any(datasets.decodes(s.function) for s in chain.stages) else "low",
        )


CAUSE = Cause(
    group="input",
    explains=("input-bound", "between-epochs"),
    in_run={"epoch-start": slow_epoch_starts, "endless": filled_for_nothing},
    patterns=(_shuffle_decoded, _prefetch_in_samples),
)
