"""A session runs its ops in the thread that calls `run`, and wakes no other one.

## What it does
`session.run` hands its ops to a pool of threads and waits until the pool is done. For a graph of a few small ops,
waking a thread and being woken by it takes longer than the ops. With `inter_op_parallelism_threads=-1` in the session's
configuration the calling thread runs them itself, one after another. A large op still uses all cores.

## When it pays
When a run computes for a fraction of a millisecond: on one machine a run of a regression with one sample
took 145 µs inside of TensorFlow, and 62 µs in the caller's thread. Where several large ops can run beside each other,
it is slower. Graphs on more than one device keep their pool.

## What it changes
Exact: the same ops with the same inputs. Ops that the graph leaves unordered run in one order of the possible ones.

## In the source
```python
config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=-1)
with tf.compat.v1.Session(config=config) as session:
    session.run(train)
```
"""

from __future__ import annotations

from flatout.cures._session_runs import reason_against
from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case


def skip(case: Case) -> str | None:
    why = reason_against(case)
    if why is None and queries.gpus_in_use(case):
        return "runs on several devices keep their pool of threads"
    return why


CURE = Cure(does="run sessions in the calling thread", equivalence="exact", side="runtime", skip=skip)
