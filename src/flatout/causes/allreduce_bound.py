"""The exchange of gradients between the ranks takes a good part of each step.

## What it is
All-reduce adds up the gradients of all ranks. What of it is not hidden behind computing makes the step longer. The rank
that comes last to an all-reduce waits for nobody, so the time it spends there is that of the exchange itself.

## Why it costs
Each collective costs a round over the network, whatever its size, and each byte costs bandwidth. A model with many
small variables, whose gradients are reduced one by one, pays the first; a large model on a slow network the second.

## How it looks
```python
options = tf.distribute.experimental.CommunicationOptions(bytes_per_pack=1)   # one collective for each gradient
strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
```

## The cure
- Many small collectives: let TensorFlow pack gradients (`bytes_per_pack=0`, the default), or give it packs of some
  megabytes. The sums stay the same up to rounding.
- Many bytes: reduce gradients as float16 or bfloat16, use NCCL between GPUs
  (`CommunicationImplementation.NCCL`), or a faster network.
- Little computing for each exchange: see `small-global-batch`.

## When it is not worth it
When ranks wait for one late rank, the time inside of the all-reduce is no exchange: see `straggler`.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.causes._ranks import EXCHANGE_MATTERS, MANY_COLLECTIVES
from flatout.causes._spec import Cause
from flatout.model import queries, ranks
from flatout.model.case import Case, Finding, Fix

SMALL_BYTES = 1e6


def in_run(case: Case) -> Iterator[Finding]:
    hosts = ranks.stepping(case)
    found = ranks.exchange(hosts)
    if found is None or queries.share(case, found.ms) < EXCHANGE_MATTERS:
        return
    shown = next(host.collectives for host in hosts if host.collectives is not None)
    each = shown.bytes_per_step / shown.per_step if shown.per_step else 0.0
    many = shown.per_step >= MANY_COLLECTIVES and each < SMALL_BYTES
    size = f" of {_bytes(each)} each" if each else ""
    packed = f"{shown.per_step:.0f} collectives{size}" if shown.per_step >= 1.5 else f"one collective{size}"
    yield from queries.finding(
        "allreduce-bound",
        case,
        f"{len(hosts)} ranks exchange values for {found.ms:.1f} ms of each step, in {packed}, and compute nothing "
        "meanwhile.",
        cost_ms=found.ms,
        where=shown.where,
        evidence=[
            queries.number("exchange", found.ms, "ms", "of a step, on the rank that comes last", "trace"),
            queries.number("collectives", shown.per_step, "per step", "", "trace"),
            queries.number("reduced-bytes", shown.bytes_per_step, "bytes/step", "", "trace"),
        ],
        fixes=[_pack() if many else _fewer_bytes()],
        confidence="high" if found.steps else "medium",
        estimate="the time in which nothing but collectives ran, on the rank that came last in each traced step",
    )


def _pack() -> Fix:
    return Fix(
        "Let TensorFlow pack the gradients: bytes_per_pack=0 in CommunicationOptions, or some megabytes.",
        equivalence="reassociated",
    )


def _fewer_bytes() -> Fix:
    return Fix(
        "Exchange less often or less: a larger batch for each replica, gradients in bfloat16, NCCL between GPUs.",
        equivalence="semantic",
    )


def _bytes(value: float) -> str:
    return (
        f"{value / 1e6:.1f} MB" if value >= 1e6 else f"{value / 1e3:.1f} kB" if value >= 1e3 else f"{value:.0f} bytes"
    )


CAUSE = Cause(group="job", in_run=in_run)
