"""A parallel map waits rather than computes, and the thread pool caps how many of its calls can wait at once.

## What it is
The function spends its time waiting: for a remote file system, a database, a lock, a sleep.
`num_parallel_calls` asks for many calls at once, but the calls share a thread pool that has about as many
threads as the machine has cores.

## Why it costs
A waiting call holds its thread. On a 2-core machine a function that waited 10 ms took 12.6 ms per element
when serial, 6.6 ms with `num_parallel_calls=16`, and 1.0 ms with 16 calls and a private pool of 16 threads.

## How it looks
```python
def fetch(path):
    return tf.io.read_file(path)   # a network file system: 20 ms of waiting, no computing

dataset = tf.data.Dataset.from_tensor_slices(remote_paths).map(fetch, num_parallel_calls=32)
```

## The cure
```python
options = tf.data.Options()
options.threading.private_threadpool_size = 32
dataset = dataset.with_options(options)
```
Fewer and larger reads are better still: see `many-small-files`. For reading files, `interleave` over
several of them with `num_parallel_calls` keeps many requests under way.
- `threadpool`: exact. It only gives the pipeline threads of its own.
- `cache`: exact, where the data stay the same; it removes the waiting from all epochs but the first.

## When it is not worth it
When the function computes: more threads than cores then compete for the same cores and with the step
itself. A function that waits inside Python holds the interpreter lock unless the call lets go of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.model.evidence.pipelines import PipelineOp
from flatout.model.evidence.program import CpuUse

WAITING = 0.6
"""Cores that the process keeps busy, below which a slow stage does not compute: it waits."""
CAN_BLOCK = ("PyFunc", "EagerPyFunc", "PyFuncStateless", "ReadFile", "TFRecord", "Fixed")
"""Ops that may wait for something outside; all others compute for as long as they run."""


def in_run(case: Case) -> Iterator[Finding]:
    hot = queries.hot_stage(case)
    used = queries.cpu_use(case)
    if hot is None or used is None or "Map" not in hot.stage.name or hot.stage.name == "FlatMap":
        return
    cores, available = used.used, used.cores
    if queries.share(case, hot.wait_ms) < 0.3 or cores > WAITING or hot.per_sample_ms < 1.0:
        return
    if not _can_block(case) or not _machine_idle(used):
        return
    yield from queries.finding(
        "blocking-map",
        case,
        f"The step waits for a map that itself waits (only {cores:.1f} of {available} cores are in use); "
        "the thread pool limits how many such waits run at once.",
        cost_ms=hot.wait_ms,
        where=hot.stage.where,
        evidence=[
            *queries.wait_evidence(case, hot),
            queries.number("cpu-use", cores, "cores", f"in use of {available}", "process clock"),
        ],
        fixes=[
            Fix(
                "Give the pipeline a private thread pool as large as its num_parallel_calls: "
                "options.threading.private_threadpool_size.",
                lever="threadpool",
            )
        ],
        confidence="medium",
        estimate="the wait that the trace shows",
    )


def _can_block(case: Case) -> bool:
    ops = case.evidence_of(PipelineOp)
    whole = sum(item.ms for item in ops)
    waiting = sum(item.ms for item in ops if item.type.startswith(CAN_BLOCK))
    return not whole or waiting >= 0.5 * whole


def _machine_idle(cpu: CpuUse) -> bool:
    """Whether the cores are idle. A process that others keep off the cores uses few of them, too."""
    return cpu.idle is None or cpu.idle >= 0.5 * (cpu.cores - cpu.used)


CAUSE = Cause(
    group="input",
    cures=("threadpool", "cache"),
    explains=("gpu-idle", "input-bound", "serial-stateful-map", "uncached-prefix"),
    replaces=("python-in-pipeline",),
    in_run=in_run,
)
