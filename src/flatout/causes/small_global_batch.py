"""The ranks have so few examples for each step that exchanging gradients takes longer than computing them.

## What it is
The work of a step grows with the batch, the exchange of gradients does not. Where each replica gets a handful of
examples, a step is mostly exchange, and more ranks make it no faster.

## Why it costs
Where computing takes 1 ms of a step and the exchange 4 ms, four times the batch takes 8 ms for what took 20.

## How it looks
```python
GLOBAL_BATCH = 64                             # was right for one GPU
per_replica = GLOBAL_BATCH // strategy.num_replicas_in_sync     # 4 on 16 replicas
```

## The cure
```python
PER_REPLICA = 64
global_batch = PER_REPLICA * strategy.num_replicas_in_sync
```
Keep the batch of each replica, and let the global one grow with the ranks. That is another training: the learning rate
usually has to follow. Or use fewer ranks.

## When it is not worth it
When the global batch is given by what trains well, and the job needs so many ranks for memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.causes._ranks import EXCHANGE_MATTERS, MANY_COLLECTIVES, own
from flatout.causes._spec import Cause
from flatout.model import queries, ranks
from flatout.model.case import Case, Finding, Fix

FEW = 32
"""Examples of a replica up to which a batch is small, where their number is known."""


def in_run(case: Case) -> Iterator[Finding]:
    hosts = ranks.stepping(case)
    found = ranks.exchange(hosts)
    if found is None or queries.share(case, found.ms) < EXCHANGE_MATTERS:
        return
    computing = max(own(host, "compute") for host in hosts)
    many = any(host.collectives is not None and host.collectives.per_step >= MANY_COLLECTIVES for host in hosts)
    batches = [item.batch for host in hosts for item in host.inputs if item.batch is not None]
    divided = [item for host in hosts for item in host.inputs if item.batch is not None and not item.from_function]
    batch = min(batches, default=None)
    if batch is not None and divided:
        batch = max(batch // max(divided[0].replicas, 1), 1)  # the dataset's batch is the global one
    if computing >= found.ms or many or batch is None or batch > FEW:
        return
    places = [item.where for host in hosts for item in host.inputs if item.where is not None]
    yield from queries.finding(
        "small-global-batch",
        case,
        f"Each replica gets {batch} examples for a step and computes {computing:.1f} ms; exchanging gradients takes "
        f"{found.ms:.1f} ms.",
        cost_ms=found.ms,
        where=places[0] if places else None,
        evidence=[
            queries.number("exchange", found.ms, "ms", "of a step, on the rank that comes last", "trace"),
            queries.number("replica-compute", computing, "ms", "of a step", "trace"),
        ],
        fixes=[Fix("Give each replica a larger batch, or use fewer ranks.", equivalence="semantic")],
        confidence="medium",
        estimate="the exchange of a step; a larger batch spreads it over more examples",
    )


CAUSE = Cause(group="job", in_run=in_run, replaces=("allreduce-bound",))
