"""TensorFlow reserves nearly all of the GPU's memory, and the program sets neither growth nor a limit.

## What it is
At its first use TensorFlow takes almost the whole memory of every GPU that it sees and hands it out by
itself. The program neither asks for growth on demand nor sets a limit.

## Why it costs
In time: mostly nothing, as reserving everything is the fast way. It costs where the GPU is shared: a second
process finds no memory and dies, or a neighbour such as a display or another framework fails. With growth
on, the pool may fragment instead: allocations fail although enough is free in pieces, or are retried
slowly.

## How it looks
```python
model = build_model()          # one process reserves 75 of 80 GB and uses 6
model.fit(dataset)             # the next one on the same GPU: CUDA_ERROR_OUT_OF_MEMORY
```

## The cure
Before anything else touches the GPU:
```python
for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
```
or a fixed share: `tf.config.set_logical_device_configuration(gpu,
[tf.config.LogicalDeviceConfiguration(memory_limit=8192)])`.
- `memory-growth`: exact. Memory is taken as needed and not given back before the process ends.
- `allocator`: exact. `TF_GPU_ALLOCATOR=cuda_malloc_async` lets the driver manage the pool and fragments
  less.

## When it is not worth it
With one process per GPU the default is right, and growth can even be a little slower at the start.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site


def in_run(case: Case) -> Iterator[Finding]:
    growth = (case.environment.get("tensorflow") or {}).get("memory_growth") or {}
    fixed = [name for name, grows in growth.items() if grows is False]
    if not fixed:
        return
    yield from queries.finding(
        "gpu-memory-unmanaged",
        case,
        f"TensorFlow took nearly all memory of {', '.join(fixed)} at the start; no other process can use the device.",
        cost_ms=None,
        where=None,
        evidence=[],
        fixes=[
            Fix(
                "tf.config.experimental.set_memory_growth(gpu, True) before the first op.",
                lever="memory-growth",
            )
        ],
        confidence="low",
        estimate="no cost in time, unless the device is shared",
    )


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

_MANAGED = (
    "set_memory_growth",
    "allow_growth",
    "set_logical_device_configuration",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "memory_fraction",
    "VirtualDeviceConfiguration",
    "set_virtual_device_configuration",
)


@pattern("no-growth", calls=("fit", "train"), words=("fit", "train"), default=False)
def _no_growth(call: ast.Call, site: Site) -> Iterator[Match]:
    """A program that trains at its top level and nowhere says how much memory of the GPU it takes."""
    outside = site.scope is site.module.top or site.scope.name == "main"
    text = site.module.text
    if outside and isinstance(call.func, ast.Attribute) and not any(word in text for word in _MANAGED):
        first = min(
            site.module.calls_by_name["fit" if "fit" in site.module.calls_by_name else "train"],
            key=lambda item: item[0].lineno,
        )
        if first[0] is call:
            yield Match(
                call,
                "TensorFlow takes nearly all memory of every GPU; no other process can use the device.",
                "On a shared device, tf.config.experimental.set_memory_growth(gpu, True) before the first operation.",
                report_at=call.func,
            )


CAUSE = Cause(
    group="hardware",
    cures=("memory-growth", "allocator"),
    in_run=in_run,
    patterns=(_no_growth,),
)
