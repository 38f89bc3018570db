"""TensorFlow runs with more or fewer threads than the machine has cores to give.

## What it is
Thread pools that do not fit: one thread set by a copied snippet or by `OMP_NUM_THREADS=1`; or a container
with a CPU quota of 2 on a host with 64 cores, where TensorFlow starts a pool for 64, because the quota does
not change the number of cores that a process sees.

## Why it costs
Too few: cores are idle. Too many: threads take each other's turn, caches are refilled, and under a quota
the kernel stops the whole process for the rest of each period once the quota is spent, which shows as steps
of very uneven length. NumPy, OpenMP and the data pipeline bring pools of their own to the same cores.

## How it looks
```python
tf.config.threading.set_intra_op_parallelism_threads(1)      # for reproducible timing, long ago
tf.config.threading.set_inter_op_parallelism_threads(1)
```

## The cure
Let the pools match the cores that the process may use, before the first operation runs:
```python
cores = len(os.sched_getaffinity(0))       # under a quota: the quota, see /sys/fs/cgroup/cpu.max
tf.config.threading.set_intra_op_parallelism_threads(cores)
```
- `threads`: reassociated. Sums are split among threads, so that the last digits may change.
- `threadpool`: exact. It gives the data pipeline its own number of threads.
- `onednn`: reassociated. The oneDNN kernels are on by default on x86; some small models run faster without
  them.

## When it is not worth it
When TensorFlow's default, one thread per visible core, fits the machine. The best number is often a little
below the number of cores when the input pipeline is busy; only a measurement shows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.model.evidence.program import Switch
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import constant, keyword


def in_run(case: Case) -> Iterator[Finding]:
    used = queries.cpu_use(case)
    if used is None or queries.gpus_in_use(case):
        return
    available = used.cores
    compute = queries.part_ms(case, "compute")
    tensorflow = case.environment.get("tensorflow") or {}
    intra = int(tensorflow.get("intra_op_threads") or 0)
    threads = [item for item in case.evidence_of(Switch) if "op_parallelism_threads" in item.name]
    limited = 0 < intra < available
    crowded = intra > 2 * available
    if not (limited or crowded) or queries.share(case, compute) < 0.3:
        return
    cost = compute * (1 - max(intra, 1) / available) if limited else 0.1 * compute
    yield from queries.finding(
        "thread-misfit",
        case,
        f"Ops may use {queries.counted(intra, 'thread')} on a machine with {queries.counted(available, 'core')}.",
        cost_ms=cost,
        where=threads[0].where if threads else None,
        evidence=[
            queries.number("threads", intra, "threads", f"for {available} cores", "tensorflow"),
            queries.number("cpu-use", used.used, "cores", "in use", "process clock"),
        ],
        fixes=[
            Fix(
                "Leave the number of threads to TensorFlow, or set it to the cores that the container may use.",
                lever="threads",
                equivalence="reassociated",
            )
        ],
        confidence="low",
        estimate="an estimate: computing spread over all cores",
    )


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────


@pattern(
    "one-thread",
    calls=("set_intra_op_parallelism_threads", "ConfigProto"),
    words=("intra_op_parallelism_threads", "set_intra_op_parallelism_threads"),
    default=False,
)
def _one_thread(call: ast.Call, site: Site) -> Iterator[Match]:
    """`tf.config.threading.set_intra_op_parallelism_threads(1)`"""
    given = keyword(call, "intra_op_parallelism_threads")
    if given is None and "set_intra" in site.dotted(call.func):
        given = call.args[0] if call.args else keyword(call, "num_threads")
    if given is not None and constant(given) == 1 and site.dotted(call.func).startswith("tensorflow."):
        yield Match(
            call,
            "Each operation runs on one core.",
            "Leave the number to TensorFlow, unless many such processes share the machine.",
            "reassociated",
            report_at=given,
        )


CAUSE = Cause(
    group="hardware",
    cures=("threads", "threadpool", "onednn"),
    in_run=in_run,
    patterns=(_one_thread,),
)
