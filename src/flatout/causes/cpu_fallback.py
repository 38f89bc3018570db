"""Operations that were meant for the GPU run on the CPU, because the GPU has no kernel for them.

## What it is
With soft placement, which is on by default in TensorFlow 2, an operation without a kernel for the asked
device and type is placed on the CPU without a word.

## Why it costs
The operation itself is slower, and its inputs must be copied to the host and its results back, each time
with a wait. In the middle of a model one such operation splits the work of the GPU in two.

## How it looks
```python
with tf.device("/GPU:0"):
    words = tf.strings.split(sentences)              # strings live on the CPU
    numbers = tf.strings.to_number(words.values, tf.int32)
    vectors = tf.gather(embedding, numbers)
```

## The cure
Move such work into the input pipeline, which runs on the CPU anyway and ahead of the step:
```python
dataset = dataset.map(words_to_numbers)              # on the CPU, in parallel, before the copy
vectors = tf.gather(embedding, numbers)              # on the GPU
```
Otherwise use another type (some integer and float64 kernels exist on the CPU only) or another operation.
`tf.config.set_soft_device_placement(False)` turns each silent fallback into an error for one test run;
`tf.debugging.set_log_device_placement(True)` prints every placement.
- An edit of the source: exact where the operation only moves; precision where its type changes.

No lever does this: only the program knows which type or which place is right.

## When it is not worth it
Many small integer operations (shapes, indices, counters) are placed on the CPU on purpose. An operation
that runs once per epoch does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.case import Case, Finding, Fix
from flatout.causes import reading

GROUP = "hardware"
LEVERS = ()


def in_run(case: Case) -> Iterator[Finding]:
    if case.placement is None or not case.placement.fallbacks:
        return
    asked = sorted({str(item.data["asked"]) for item in case.placement.fallbacks})
    count = sum(int(item.value or 0) for item in case.placement.fallbacks)
    yield from reading.finding(
        "cpu-fallback",
        case,
        f"{count} ops ask for {', '.join(asked)}, which is not there; soft placement ran them elsewhere, silently.",
        cost_ms=None,
        where=next((item.where for item in case.placement.fallbacks if item.where), None),
        evidence=case.placement.fallbacks[:3],
        fixes=[
            Fix("Name a device that exists, or none; tf.config.set_soft_device_placement(False) makes it an error.")
        ],
        estimate="not measured",
    )
