"""Copies between host and device take a large part of the step.

## What it is
The trace shows long transfers from host to device or back, with the device idle meanwhile.

## Why it costs
The bus is many times slower than the device's own memory: tens against thousands of gigabytes a second. A
copy that is not overlapped with computing is pure waiting, and memory that is not page-locked is copied
twice.

## How it looks
```python
for images, labels in dataset:                       # float32 images, 4 bytes per channel, on the host
    logits = forward(images)
    predictions = logits.numpy().argmax(axis=1)      # all logits go back to the host
    correct += (predictions == labels.numpy()).sum()
```

## The cure
Send less, send it earlier, and leave results where they are:
```python
dataset = dataset.apply(tf.data.experimental.prefetch_to_device("/GPU:0"))    # as the last stage
for images, labels in dataset:                       # uint8 images: a quarter of the bytes
    metric.update_state(labels, forward(tf.cast(images, tf.float32) / 255.0))
print(float(metric.result()))
```
- `prefetch` (to the device): exact. The copy of the next batch overlaps with this step.
- Sending `uint8` and casting on the device: exact. Sending half precision: precision.
- `cache` does not help: it keeps elements on the host.

## When it is not worth it
When copies already overlap with computing: then they cost nothing, however long they are. On the CPU there
is no bus to cross.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix


def in_run(case: Case) -> Iterator[Finding]:
    cost = queries.part_ms(case, "copy")
    if queries.share(case, cost) < 0.05:
        return
    copies = [copy for device in case.devices for copy in device.copies]
    device = queries.busiest_gpu(case)
    steps = device.window_ms / queries.step_ms(case) if device is not None and queries.step_ms(case) else 1.0
    yield from queries.finding(
        "copy-bound",
        case,
        "The device is idle while data is copied to or from it.",
        cost_ms=cost,
        where=case.steps.where if case.steps else None,
        evidence=[
            queries.number("copying", cost, "ms", "of a step, nothing computing", "trace"),
            *(
                queries.number(copy.kind, copy.bytes / steps, "bytes", "of each step", "trace")
                for copy in copies
                if copy.bytes
            ),
        ],
        fixes=[
            Fix(
                "Copy ahead with prefetch_to_device, send smaller types, and keep results on the device.",
                lever="prefetch",
            )
        ],
        estimate="copies that nothing else hides",
    )


CAUSE = Cause(
    group="hardware",
    cures=("prefetch",),
    in_run=in_run,
)
