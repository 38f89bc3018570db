"""One rank waits for its input, and all others wait for that rank.

## What it is
Each rank reads its own part of the data. Where one of them reads more slowly, because of a slower disk, larger files or
more work for its examples, it comes late to each all-reduce, and the others wait for it there.

## Why it costs
The slowest input pipeline of the job sets the pace of all ranks, as if all had it. The others' pipelines stand still,
their buffers full.

## How it looks
```python
files = sorted(tf.io.gfile.glob("data/*.tfrecord"))
mine = files[rank::ranks]         # one rank has got all the large files
dataset = tf.data.TFRecordDataset(mine).map(decode).batch(64)
```

## The cure
- Divide examples, not files, or make files of about the same size: `flatout data convert`.
- Make the pipeline of that rank faster: its own case says which stage is slow (`flatout show DIR/ranks/worker-1`).
- Where the machines differ, let the tf.data service make batches for all ranks: a slow machine then only makes fewer.

## When it is not worth it
When all ranks wait alike for their input, it is no skew: see `input-bound`.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.causes._ranks import late, since
from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix


def in_run(case: Case) -> Iterator[Finding]:
    found = late(case)
    if found is None or found.part != "input":
        return
    host = found.host
    places = [item.where for item in host.inputs if item.where is not None]
    yield from queries.finding(
        "input-skew",
        case,
        f"{host.name[:1].upper()}{host.name[1:]} waits {found.part_ms:.1f} ms of each step for its input, the others "
        f"{found.others_part_ms:.1f} ms: they wait {found.ms:.1f} ms for it{since(case, found.ms)}.",
        cost_ms=found.ms,
        where=places[0] if places else None,
        evidence=[
            queries.number("input-wait", found.part_ms, "ms", f"of a step, on {host.name}", "trace"),
            queries.number("input-wait", found.others_part_ms, "ms", "of a step, on the others", "trace"),
        ],
        fixes=[
            Fix(f"Make the input of {host.name} as fast as the others': its own case says which stage is slow."),
            Fix("Let the tf.data service make the batches for all ranks.", equivalence="semantic"),
        ],
        confidence="high" if host.collectives is not None else "medium",
        estimate=found.estimate,
    )


CAUSE = Cause(group="job", in_run=in_run)
