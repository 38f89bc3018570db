"""The GPU waits between kernels that are too small: starting them takes longer than running them.

## What it is
Inside a traced step, hundreds of kernels of a few microseconds each follow one another. The host starts one at a time,
and the device is idle until the next one arrives.

## Why it costs
Starting an op of a graph costs about 6 µs on the host, however little it computes. A recurrent layer that cuDNN cannot
take, with 200 time steps of 20 ops, costs 24 ms a step even if its arithmetic takes 2 ms. On an H200 such a layer took
128 ms a step with 9.7 ms of computing; compiled by XLA it took 18 ms.

## How it looks
```python
layers.LSTM(128, recurrent_activation="hard_sigmoid")    # cuDNN has no kernel for it: a loop over time

for layer in range(100):
    x = tf.nn.relu(x * scale[layer] + shift[layer])      # three kernels each
```

## The cure
```python
model.compile("adam", "mse", jit_compile=True)           # or @tf.function(jit_compile=True)
```
- `xla`: reassociated. XLA makes one kernel of many ops, and one launch of many kernels.
- For a recurrent layer, settings that cuDNN can take (`unfused-recurrent`): **semantic**.
- `batch-size`: **semantic**. More work for each kernel.

## When it is not worth it
Compiling takes seconds to minutes, once for each set of shapes. A run of a few hundred steps may end before that has
paid.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Device, Finding, Fix, Where

SHORT_US = 25.0
"""A kernel that takes longer on average covers the start of the next one."""
COMPILED = 0.2
"""Of the kernels' time in kernels that XLA has made: from here on it has nothing left to fuse."""
MANY = 40
"""Kernels of a step. With fewer, what is between the steps costs more than what is between the kernels."""


def in_run(case: Case) -> Iterator[Finding]:
    device = queries.busiest_gpu(case)
    if device is None or not device.detail.kernels or not device.detail.kernel_ms:
        return
    per_step = queries.kernels_per_step(case, device)
    mean_us = 1e3 * device.detail.kernel_ms / device.detail.kernels
    waiting = queries.part_ms(case, "idle")
    compiled = (device.detail.fused_ms or 0.0) > COMPILED * device.detail.kernel_ms
    if per_step < MANY or mean_us > SHORT_US or compiled:
        return
    yield from queries.finding(
        "launch-bound",
        case,
        f"A step starts {per_step:.0f} kernels of {mean_us:.0f} µs each, and the GPU waits for each of them.",
        cost_ms=waiting,
        where=_where(case, device) or (case.steps.where if case.steps else None),
        evidence=[
            queries.number("kernels", per_step, "kernels/step", "started on the GPU", "trace"),
            queries.number("kernel", mean_us, "µs", "on average", "trace"),
            queries.number("waiting", waiting, "ms", "of a step, inside calls, nothing computing", "trace"),
        ],
        fixes=[
            Fix(
                "Compile the step with XLA (jit_compile=True): it makes one kernel of many ops.",
                lever="xla",
                edit="jit_compile=True",
                equivalence="reassociated",
            )
        ],
        estimate="the time inside calls in which the GPU computes nothing",
    )


def _where(case: Case, device: Device) -> Where | None:
    """The user's line whose ops start most kernels."""
    counts: dict[Where, float] = {}
    for op in case.ops:
        if op.where is not None and op.device == device.name:
            counts[op.where] = counts.get(op.where, 0.0) + op.count
    return max(counts, key=lambda where: counts[where], default=None)


CAUSE = Cause(
    group="hardware",
    cures=("xla", "batch-size"),
    explains=("gpu-idle", "step-overhead/starting-calls"),
    in_run=in_run,
)
