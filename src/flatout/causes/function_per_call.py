"""A new tf.function object is made for every call, so that nothing traced is ever used twice.

## What it is
`tf.function(...)` or a decorated inner function stands inside a loop or inside a function that is called
often. Each object starts without any graph.

## Why it costs
Every call pays for a whole trace: 11,981 µs per call on one machine, where calls of a function that was
made once pay that a single time. Each object also holds its graph until it is collected.

## How it looks
```python
def evaluate(model, batch):
    @tf.function
    def forward(values):                   # a new object in each call of evaluate
        return model(values, training=False)

    return forward(batch)

for batch in dataset:
    evaluate(model, batch)
```

## The cure
Make it once, at module level, in `__init__`, or in a cached factory:
```python
def make_forward(model):
    return tf.function(lambda values: model(values, training=False))

forward = make_forward(model)
for batch in dataset:
    forward(batch)
```
- `reuse-functions`: exact; the same graph, kept. From the third making on, a function of the same code, object and
  surroundings is the first one again. In the source, make it once and keep it.

## When it is not worth it
When the objects are few and each is called often: one function per model, per loss or per layer is
ordinary. flatout counts the objects made from one source line, and speaks up only where they keep coming.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.case import Case, Finding, Fix
from flatout.causes import reading

GROUP = "graph"
LEVERS = ("reuse-functions",)


def in_run(case: Case) -> Iterator[Finding]:
    if case.steps is None:
        return
    for made in case.evidence_of("functions-made"):
        often = float(made.data["per_step"])
        if often < 0.2 or int(made.data["traces"]) < 5:
            continue
        tracing = float(made.data["trace_ms"]) / max(case.steps.count, 1)
        yield from reading.finding(
            "function-per-call",
            case,
            f"A new tf.function of {made.data['name']} is made {often:.1f} times a step, and each one is traced anew.",
            cost_ms=max(reading.tracing_ms(case), tracing),
            where=made.where,
            evidence=[made, reading.number("tracing", tracing, "ms", "per step, spent tracing", "hook")],
            fixes=[Fix("Make the tf.function once, outside the loop, and pass what varies as arguments.")],
            estimate="measured by hooks on tracing",
        )
