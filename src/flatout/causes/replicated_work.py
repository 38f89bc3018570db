"""Every rank evaluates all of the validation data, though each could take a part.

## What it is
The program is the same on all ranks, and so is what it does beside its training steps. Steps are divided by the
strategy; a loop over the validation data is not, unless the program divides it.

## Why it costs
The ranks wait for each other at the next training step. With n ranks, an evaluation that each does as a whole takes n
times as long as one that is divided between them.

## How it looks
```python
while epoch < epochs:
    train_epoch()
    losses = [evaluate(x, y) for x, y in validation]     # on every rank, all of it
```

## The cure
```python
validation = strategy.experimental_distribute_dataset(validation)


@tf.function
def evaluate(batch):
    return strategy.reduce("sum", strategy.run(loss_of, args=(batch,)), axis=None)
```
Distribute the validation data, or leave evaluation to a process of its own (the role `evaluator`) that reads
checkpoints. Checkpoints and logs that each rank writes run beside each other and cost no more time than the chief's:
write them to different places, or on the chief alone.

## When it is not worth it
When the validation data is small, or the ranks need the results at the same moment to decide when to stop.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.causes._run_parts import of_run, seconds
from flatout.causes._spec import Cause
from flatout.model import ranks
from flatout.model.case import Case, Finding, Fix, Host, RankWork

ALIKE = 0.5
"""How far the ranks' times for the same work may lie apart."""


def in_run(case: Case) -> Iterator[Finding]:
    hosts = ranks.stepping(case)
    if len(hosts) < 2:
        return
    for work in hosts[0].work:
        same = [_same(host, work) for host in hosts[1:]]
        if work.kind not in ("validation", "prediction") or not all(same) or _is_distributed(hosts[0], work):
            continue
        least = min(work.seconds, *(one.seconds for one in same if one is not None))
        if least < ALIKE * work.seconds:
            continue
        count = len(hosts)
        what = "evaluate" if work.kind == "validation" else "predict"
        yield from of_run(
            "replicated-work",
            case,
            f"{count} ranks each {what} the same data for {seconds(least)} of the run; divided between them it would "
            f"take {seconds(least / count)}.",
            least * (count - 1) / count,
            work.where,
            [Fix("Distribute the data of this loop with the strategy, or evaluate in a process of its own.")],
            "medium",
        )


def _same(host: Host, work: RankWork) -> RankWork | None:
    return next((one for one in host.work if (one.kind, one.name) == (work.kind, work.name)), None)


def _is_distributed(host: Host, work: RankWork) -> bool:
    """The data of this work may be that of a strategy: Keras distributes it, or the program has several datasets."""
    distributed = [item for item in host.inputs if item.policy != "off" and item.sharded is not False]
    return work.name != "loop" or len(distributed) > 1


CAUSE = Cause(group="job", in_run=in_run, replaces=("validation-bound",))
