"""A recurrent layer goes through a few time steps in a loop, and the loop itself takes much of the time.

## What it is
`LSTM`, `GRU` and `SimpleRNN` run as a loop in the graph on a CPU. With few time steps and small layers, entering and
leaving the body of the loop, and keeping what the gradient needs in lists, takes a good part of the time.

## Why it costs
Each time step is a turn of the loop, forward and backward. Between two turns the executor does what it does between
any two small operations, several times over, and TensorFlow's optimizer cannot look across turns.

## How it looks
```python
inputs = keras.Input((7, 12))                       # seven time steps, always
outputs = keras.layers.LSTM(128)(inputs)
```

## The cure
```python
outputs = keras.layers.LSTM(128, unroll=True)(inputs)
```
- `unroll`: reassociated. Tracing takes longer, and the length must be known when the layer is called.
- `steps-per-execution` helps the same programs: their steps are short.

## When it is not worth it
With long sequences the graph grows, and tracing with it. On a GPU the fused kernel is faster, and an unrolled layer
cannot use it. Where the layers are large, the matrix products take all the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.model.evidence.program import RecurrentLayer

LONGEST = 32
MATTERS = 0.03
LISTS = ("TensorList", "Enter", "Exit", "Switch", "Merge", "NextIteration", "LoopCond")


def in_run(case: Case) -> Iterator[Finding]:
    layers = [
        item
        for item in case.evidence_of(RecurrentLayer)
        if not item.unrolled and item.steps is not None and 1 < item.steps <= LONGEST
    ]
    if not layers or queries.gpus_in_use(case):
        return
    inside = re.compile(rf"(^|/)({'|'.join(re.escape(item.name) for item in layers)})(_\d+)?/(.*/)?while")
    loops = [op for op in case.ops if inside.search(op.name)]
    # What the executor does between small ops grows with their number, not with their size.
    often = sum(op.count for op in loops) / (sum(op.count for op in case.ops) or 1.0)
    between = queries.part_ms(case, "idle") * often
    whole = sum(op.self_ms for op in case.ops) or 1.0
    lists = sum(op.self_ms for op in loops if op.type.startswith(LISTS))
    cost = between + queries.part_ms(case, "compute") * lists / whole
    if queries.share(case, cost) < MATTERS:
        return
    longest = max(layers, key=lambda item: item.steps or 0)
    yield from queries.finding(
        "short-recurrence",
        case,
        f"A loop in the graph computes {queries.counted(len(layers), 'recurrent layer')}, over {longest.steps} "
        "time steps at most.",
        cost_ms=cost,
        where=longest.where,
        evidence=[
            queries.number("between", between, "ms", "between the small ops of the loops", "trace"),
            queries.number("ops", sum(op.count for op in loops), "ops/step", "in these loops", "trace"),
        ],
        fixes=[Fix("Unroll it: unroll=True.", lever="unroll", equivalence="reassociated")],
        confidence="low",
        estimate="an estimate: the time between the ops of the loops, and that of their lists",
    )


CAUSE = Cause(group="graph", cures=("unroll", "steps-per-execution"), in_run=in_run)
