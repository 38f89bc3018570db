"""The program works at the edge of its memory: it swaps, retries, or must use too small a batch.

## What it is
The peak of the device's or the process's memory comes close to the limit. flatout shows which operations
hold the memory at that moment.

## Why it costs
On the host, swapping makes everything slower by orders of magnitude. On a device, an allocation that finds
no room waits and is tried again, convolutions fall back to algorithms with less working space, and at last
the run fails. Choosing a smaller batch to survive leaves the device partly unused.

## How it looks
```python
activations = []
for images, labels in dataset:
    activations.append(model(images))      # every batch's result is kept
    train_step(images, labels)
```

## The cure
Keep nothing that is not needed, then spread the peak:
```python
optimizer = keras.optimizers.Adam(1e-3, gradient_accumulation_steps=4)
dataset = dataset.unbatch().batch(16)      # 4 × 16 instead of 64 at once
```
- `accumulate`: reassociated at the same effective batch; **semantic** with batch normalization, which sees
  the small batches.
- `bf16`, `fp16`: precision, and about half of the activations. `batch-size`: semantic.
- `allocator`: exact; on the host another malloc (tcmalloc, jemalloc) often fragments less.
- Recomputing activations (`tf.recompute_grad`): reassociated, less memory for more arithmetic.

## When it is not worth it
A high peak alone is no fault: memory that is there may be used. Accumulation and recomputing make each
update slower; they pay only where they allow what would not fit otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.case import Case, Finding, Fix
from flatout.causes import reading

GROUP = "hardware"
LEVERS = ("accumulate", "bf16", "fp16", "batch-size", "allocator")

FULL = 0.85


def in_run(case: Case) -> Iterator[Finding]:
    if case.memory is None or not case.memory.limit_bytes:
        return
    used = max(case.memory.process_peak_bytes, 0) / case.memory.limit_bytes
    if used < FULL:
        return
    yield from reading.finding(
        "memory-pressure",
        case,
        f"The process used {used:.0%} of the memory it may have; a little more and it is killed.",
        cost_ms=None,
        where=case.memory.by_op[0].where if case.memory.by_op else None,
        evidence=[
            reading.number("peak", case.memory.process_peak_bytes, "bytes", "of the process", "process"),
            reading.number("limit", case.memory.limit_bytes, "bytes", "of the machine or container", "system"),
        ],
        fixes=[
            Fix(
                "A smaller batch, accumulated gradients, smaller shuffle buffers and caches.",
                lever="accumulate",
                equivalence="reassociated",
            )
        ],
        estimate="not a cost in time until it fails",
    )
