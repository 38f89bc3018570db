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
- A smaller prefetch: exact. A shuffle of names instead of images: semantic in the order of the elements,
  and a better shuffle than before.
- A smaller shuffle buffer is **semantic**: elements mix less. Data sorted by class need a large one.

No lever does this: the size of a shuffle is part of the training recipe, so flatout only tells what it
costs.

## When it is not worth it
When the elements are small numbers and the buffer fills within a second, a large shuffle is right as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.case import Case, Finding, Fix
from flatout.causes import reading

GROUP = "input"
YIELDS_TO = ("uncached-prefix", "python-in-pipeline", "serial-stateful-map", "blocking-map", "many-small-files")
LEVERS = ()


def in_run(case: Case) -> Iterator[Finding]:
    started = case.evidence_of("epoch-start")
    cost = float(started[0].value or 0.0) if started else 0.0
    for pipeline in case.pipelines:
        for stage in pipeline.stages:
            if stage.name != "Shuffle" or stage.buffer in (None, "autotuned") or stage.detail.get("by") == "keras":
                continue
            held = int(stage.detail.get("buffered_bytes") or 0)
            size = int(stage.buffer or 0) * int(stage.detail.get("element_bytes") or 0)
            memory = case.memory.limit_bytes if case.memory is not None else 0
            heavy = bool(memory) and max(size, held) > 0.25 * memory
            slow = reading.share(case, cost) >= 0.05 and int(stage.buffer or 0) >= 1000
            if not heavy and not slow:
                continue
            yield from reading.finding(
                "oversized-buffer",
                case,
                f"Each epoch begins by filling a shuffle buffer of {stage.buffer} elements before the first step can run.",
                cost_ms=cost,
                where=stage.where,
                evidence=[
                    reading.number("epoch-start", cost, "ms", "per step, spent at the start of epochs", "hook"),
                    reading.number("buffer", max(size, held), "bytes", "held by the buffer", "tf.data"),
                ],
                fixes=[
                    Fix(
                        "Use a smaller buffer, or shuffle file names or indices instead of samples.",
                        equivalence="semantic",
                    )
                ],
                confidence="medium",
                estimate="the slower first step of each epoch, spread over all steps",
            )
