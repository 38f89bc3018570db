"""One rank of the job works longer in each step, and all others wait for it.

## What it is
Under MultiWorkerMirroredStrategy every step ends in an all-reduce, which is over when the last rank has come. One rank
that works longer than the others sets the pace of all; they spend the difference waiting inside of the all-reduce.

## Why it costs
What one rank takes longer, the whole job takes longer: with 32 ranks, 30 ms of one process cost 32 times 30 ms of
machine time in each step. The waiting ranks look busy, as their trace shows an op that runs.

## How it looks
```python
while step < steps:
    if rank == 1:
        upload(logs)              # 30 ms in each step, on one rank
    train_step(next(iterator))    # all others wait here
```
The screen of the job shows each rank's own work beside what it spends with or for others. The rank with the least
waiting is the late one, and the finding says which part of its step is longer than on the others.

## The cure
- Python between the calls: do it every hundredth step, or in a thread that the step does not wait for.
- Computing: the rank has fewer cores, shares its machine, or its GPU runs at lower clocks. Compare the machines with
  `flatout env`, and look at what else runs there.
- Its input: see `input-skew`.

## When it is not worth it
When another rank is late in each step in turns: then it is the noise of the machines, and no rank is at fault.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.causes._ranks import PARTS, Late, late, since
from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix


def in_run(case: Case) -> Iterator[Finding]:
    found = late(case)
    if found is None or found.part == "input":
        return
    host = found.host
    yield from queries.finding(
        "straggler",
        case,
        f"{host.name[:1].upper()}{host.name[1:]} works {found.own_ms:.1f} ms in each step, the others "
        f"{found.others_ms:.1f} ms: they wait {found.ms:.1f} ms for it{since(case, found.ms)}. What differs is "
        f"{PARTS[found.part]}: {found.part_ms:.1f} ms against {found.others_part_ms:.1f} ms{_more(found)}.",
        cost_ms=found.ms,
        where=None,
        evidence=[
            queries.number("rank-own-work", found.own_ms, "ms", f"of a step, on {host.name}", "trace"),
            queries.number("rank-own-work", found.others_ms, "ms", "of a step, on the others", "trace"),
        ],
        fixes=[Fix(_advice(found))],
        confidence="high" if host.collectives is not None else "medium",
        estimate=found.estimate,
    )


def _more(found: Late) -> str:
    host = found.host
    places = [place for _, _, place in host.findings if place]
    if found.part == "python" and places:
        return f", at {places[0]}"
    if found.part == "compute" and host.cores is not None and host.cores_used is not None:
        return f"; it keeps {host.cores_used:.1f} of {host.cores} cores busy"
    return ""


def _advice(found: Late) -> str:
    if found.part == "python":
        return f"Take this work out of the step on {found.host.name}: do it rarely, or in a thread of its own."
    return (
        f"Compare {found.host.name}'s machine ({found.host.machine or 'unknown'}) with the others: cores, clocks, load."
    )


CAUSE = Cause(group="job", in_run=in_run)
