"""On a GPU, most of the time goes into small element-wise kernels that XLA would fuse.

## What it is
Between two matrix products a network adds, scales, normalises and drops. TensorFlow runs each of these ops as a kernel
of its own, which reads its input from the GPU's memory and writes its output back.

## Why it costs
Such a kernel is limited by memory, not by arithmetic: ten of them move the same tensor twenty times. XLA makes one
kernel of them, which moves it twice. In the trace of a transformer encoder on an H200, 78 % of the kernels' time
went into such kernels.

## How it looks
```python
@tf.function
def train_step(tokens):
    ...
```

## The cure
```python
@tf.function(jit_compile=True)
def train_step(tokens):
    ...
```
- `xla`: reassociated. In Keras: `model.compile(..., jit_compile=True)`, which is the default of `fit` on a GPU.
- `bf16` on top: **precision**. Without XLA its casts are further kernels, and it may make a step slower.

## When it is not worth it
Where the step has large products only. Compiling takes seconds to minutes, once for each set of shapes: a run of a few
hundred steps may end before that has paid.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix

BUSY = 0.5
FUSED = 0.2
"""Of the kernels' time in kernels that XLA has made: from here on the step is compiled already."""
REMOVED = 0.7
"""Of the time in small kernels: assumed to go when they are fused. Not measured: `tune` measures it on the program."""


def in_run(case: Case) -> Iterator[Finding]:
    device = queries.busiest_gpu(case)
    whole = device.detail.kernel_ms if device is not None else None
    if device is None or not whole or device.busy_share < BUSY or (device.detail.fused_ms or 0.0) > FUSED * whole:
        return
    products = (device.detail.matrix_ms or 0.0) + (device.detail.collective_ms or 0.0)
    small = max(whole - products, 0.0) / whole
    computing = queries.part_ms(case, "compute")
    yield from queries.finding(
        "unfused-kernels",
        case,
        f"{small:.0%} of the GPU's time goes into other kernels than matrix products and convolutions, one per op.",
        cost_ms=REMOVED * small * computing,
        where=case.steps.where if case.steps else None,
        evidence=[
            queries.number("small kernels", small, "share", "of the kernels' time", "trace"),
            queries.number("kernels", queries.kernels_per_step(case, device), "kernels/step", "on the GPU", "trace"),
        ],
        fixes=[
            Fix(
                "Compile the step with XLA: jit_compile=True.",
                lever="xla",
                edit="jit_compile=True",
                equivalence="reassociated",
            )
        ],
        confidence="low",
        estimate="an assumption: fusing removes 70 % of the time in such kernels",
    )


CAUSE = Cause(
    group="hardware",
    cures=("xla", "bf16"),
    in_run=in_run,
)
