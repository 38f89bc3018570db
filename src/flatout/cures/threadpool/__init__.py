"""The pipeline gets threads of its own, so that more calls of a map can wait at the same time.

## What it does
Sets `options.threading.private_threadpool_size`. The number of parallel calls stays as the program wrote it: the pool
only lets as many of them run as were asked for.

## When it pays
When a parallel map waits rather than computes: for files, a network, a database. TensorFlow's own pool has about as
many threads as the machine has cores, and a waiting call holds one. On a 2-core machine a map that waits 10 ms took
6.6 ms per element with 16 parallel calls, and 1.0 ms with 16 threads as well. A map that computes gains nothing: the
cores stay as many as they are.

## What it changes
Exact: the same elements in the same order.

## In the source
```python
options = tf.data.Options()
options.threading.private_threadpool_size = 16
dataset = dataset.with_options(options)
```
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flatout.cures import _pipelines
from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case

SETTING = "threading.private_threadpool_size"
SIZES = ("16", "32")
BUSY = 0.9
"""Share of the cores in use, above which a pipeline computes and does not wait."""
MOST = 128


def values(case: Case) -> Sequence[str]:
    asked = [
        int(stage.parallelism or 0) for _, _, stage in _pipelines.stages(case) if (stage.parallelism or "").isdigit()
    ]
    most = max(asked, default=0)
    return (str(min(most, MOST)),) if most > 2 else SIZES


def skip(case: Case) -> str | None:
    used = queries.cpu_use(case)
    if used is not None and used.used >= BUSY * used.cores:
        return f"the program keeps {used.used:.1f} of {used.cores} cores busy: its maps compute, they do not wait"
    if case.pipelines and not any(
        stage.parallelism not in (None, "1") or _tuned(stage) for _, _, stage in _pipelines.stages(case)
    ):
        return "no stage makes several calls at once"
    return _pipelines.no_wait(case)


def _tuned(stage: Any) -> bool:
    """A stateless map is made parallel by TensorFlow."""
    return _pipelines.is_map(stage) and stage.stateful is None


CURE = Cure(
    does="give the pipeline {value} threads of its own",
    equivalence="exact",
    side="input",
    # The pool's size follows from the number of parallel calls.
    after=("parallel-map",),
    values=values,
    skip=skip,
)
