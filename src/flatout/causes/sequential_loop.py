"""A loop in the graph does one after another what a single operation could do at once.

## What it is
`for i in tf.range(n)`, `tf.while_loop`, `tf.map_fn` or `tf.scan` over rows, where no round needs the result
of the one before. It is **not** a retrace per round: the loop is traced once, as one loop operation.

## Why it costs
Every round pays for the dispatch of its small operations and for reading and writing a `TensorArray`, and
the kernels see one row at a time. On one machine a loop took 1618 µs and its vectorised form 284 µs. On an
accelerator each round also launches its own small kernels.

## How it looks
```python
@tf.function
def normalise(rows):
    result = tf.TensorArray(tf.float32, size=tf.shape(rows)[0])
    for i in tf.range(tf.shape(rows)[0]):
        result = result.write(i, rows[i] / tf.norm(rows[i]))
    return result.stack()
```

## The cure
```python
@tf.function
def normalise(rows):
    return rows / tf.norm(rows, axis=1, keepdims=True)
```
`tf.vectorized_map` does this for many functions of one row; `tf.map_fn(..., parallel_iterations=...)` is
still a loop.
- An edit of the source: reassociated. The sum inside a reduction may be taken in another order.
- `xla` can make the body of a true recurrence cheaper: reassociated, and slower for some programs.

## When it is not worth it
When a round needs the result of the last one (recurrent networks, sampling, simulation), or when all rows
at once would not fit in memory. A loop of few rounds with large bodies costs nothing worth mentioning.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.case import Case, Finding, Fix
from flatout.causes import per_sample_loop, reading
from flatout.source import places

GROUP = "graph"
LEVERS = ("xla",)

TRIPS = 8
RECURRENT = ("lstm", "gru", "rnn")


def in_run(case: Case) -> Iterator[Finding]:
    if any(per_sample_loop.traced_loops(case)):
        return
    for item in case.evidence_of("graph-loop"):
        trips = float(item.value or 0)
        if trips < TRIPS or item.where is None or item.where.file is None or item.where.line is None:
            continue
        if any(mark in str(item.data["graph"]).lower() for mark in RECURRENT):
            continue  # a recurrent layer must go step by step
        loop = places.innermost_loop(item.where.file, item.where.line)
        line = loop.line if loop is not None else item.where.line
        inside = float(item.data["ms_per_step"])
        cost = (inside + reading.part_ms(case, "idle") * float(item.data["share_of_ops"])) * (1 - 1 / trips)
        yield from reading.finding(
            "sequential-loop",
            case,
            f"A loop in the graph runs {trips:.0f} times a step, one small op after another.",
            cost_ms=cost,
            where=places.where(item.where.file, line, item.where.function),
            evidence=[item, reading.number("body", inside, "ms", "per step in the loop's ops", "trace")],
            fixes=[
                Fix(
                    "Where a turn does not need the one before, compute all of them as one tensor.",
                    equivalence="reassociated",
                )
            ],
            confidence="low",
            estimate="an estimate: what vectorising would save at most",
        )
        return
