"""The GPU is idle for a large part of each step, waiting for the host to give it work.

## What it is
In the trace there are gaps between kernels in which no stream of the device computes or copies. flatout
adds the gaps up and looks at what the host was doing meanwhile.

## Why it costs
The gaps are time paid for and not used. There are four usual reasons, and each has a page: the host
prepares data (`input-bound`), dispatches operations one by one from Python (`eager-step`), waits for a
value (`host-sync`), or the kernels are too short to cover the pauses between steps (`step-overhead`).

## How it looks
```python
for paths, labels in dataset:
    images = np.stack([read_image(p.numpy()) for p in paths])    # the GPU has nothing to do here
    loss = train_step(images, labels)
    print(float(loss))                                           # and waits for the host here
```

## The cure
Move the preparation into a pipeline that runs ahead of the step, and read values back seldom:
```python
for number, (images, labels) in enumerate(dataset.map(load).batch(64).prefetch(tf.data.AUTOTUNE)):
    loss = train_step(images, labels)
    if number % 100 == 0:
        print(float(loss))
```
- `prefetch`, `cache`: exact, for gaps that wait for input. `free-input` shows how much these can bring at
  most.
- `function`, `steps-per-execution`: reassociated, for gaps that wait for Python.
- `xla`: reassociated, fewer and larger kernels. `batch-size`: **semantic**, more work per kernel.

## When it is not worth it
Gaps at the start (tracing, compilation, allocation) are paid once. A small model may not be able to fill a
large GPU at all; a smaller GPU, or several runs side by side, is then the better use of money.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix

BUSY = 0.7


def in_run(case: Case) -> Iterator[Finding]:
    for device in case.devices:
        if device.kind != "gpu" or device.busy_share >= BUSY or not device.window_ms:
            continue
        idle = 1 - device.busy_share
        yield from queries.finding(
            "gpu-idle",
            case,
            f"{device.name} computes only {device.busy_share:.0%} of the time; the host does not keep it busy.",
            cost_ms=idle * queries.step_ms(case) if case.steps is not None else idle * device.window_ms,
            where=case.steps.where if case.steps else None,
            evidence=[queries.number("busy", device.busy_share, "share", "of the window the device works", "trace")],
            fixes=[
                Fix(
                    "Cure what the host does between the kernels: the input, eager ops, pulls; or more steps a call.",
                    lever="steps-per-execution",
                )
            ],
            estimate="the device's idle time",
        )


CAUSE = Cause(
    group="hardware",
    cures=("prefetch", "cache", "function", "steps-per-execution", "xla", "batch-size", "free-input"),
    in_run=in_run,
)
