"""The thread pool for the work inside one operation gets another size.

## What it does
Sets `TF_NUM_INTRAOP_THREADS` and `OMP_NUM_THREADS` before the program starts, to the cores that it may use (the quota
of a container counted in) or to half of them.

## When it pays
In a container with a quota, where TensorFlow starts a thread for each core of the host and the kernel then throttles
them; with hyper-threads, where half as many threads may do the same work; on many cores with small operations.

## What it changes
Reassociated: sums are split among other numbers of threads.

## In the source
```python
tf.config.threading.set_intra_op_parallelism_threads(8)        # before the first operation
```
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from flatout.cures._spec import Cure
from flatout.environment import cgroup
from flatout.model import queries
from flatout.model.case import Case
from flatout.model.evidence.program import Switch


def usable_cores() -> int:
    """Cores that this process may keep busy: those it is bound to, or the quota where that is less."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cgroup.cpu_quota()
    return max(1, min(bound, math.ceil(quota[0]) if quota else bound))


def skip(case: Case) -> str | None:
    if any("intra_op_parallelism" in item.name for item in case.evidence_of(Switch)):
        return "the program sets its number of threads itself"
    if not values(case):
        return "TensorFlow already has one thread for each of the few cores"
    return None


def values(case: Case) -> Sequence[str]:
    cores = usable_cores()
    now = int((case.environment.get("tensorflow") or {}).get("intra_op_threads") or 0) or (os.cpu_count() or cores)
    wanted = [cores] if queries.gpus_in_use(case) or cores < 4 else [cores, cores // 2]
    return tuple(str(n) for n in wanted if n != now)


def environment(value: str) -> dict[str, str]:
    return {"TF_NUM_INTRAOP_THREADS": value, "OMP_NUM_THREADS": value}


CURE = Cure(
    does="use {value} threads inside an operation",
    equivalence="reassociated",
    side="runtime",
    values=values,
    skip=skip,
    environment=environment,
)
