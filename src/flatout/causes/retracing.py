"""A tf.function is traced again and again because an argument keeps changing in a way that needs a new graph.

## What it is
A `tf.function` builds one graph for each kind of arguments. For a tensor the kind is its type and shape;
for a Python number, string or object it is the **value**. flatout names the argument that changed, from
what to what, and the line of the call.

## Why it costs
A trace runs the Python body, builds and optimises a graph: milliseconds to seconds, where a call takes
microseconds. On one machine a step with a changing Python number took 9473 µs, with a tensor in its place
708 µs. The old graphs are kept, so memory grows as well.

## How it looks
```python
@tf.function
def step(batch, rate):
    ...

for number, batch in enumerate(dataset):
    step(batch, 0.1 * 0.99**number)        # a new Python float each time: a new trace each time
```

## The cure
```python
for number, batch in enumerate(dataset):
    step(batch, tf.constant(0.1 * 0.99**number))
```
- A changing Python number: pass a tensor or keep it in a `tf.Variable`. `relax-shapes` does not help here.
- A changing shape: `@tf.function(reduce_retracing=True)` or an `input_signature` with `None` dimensions.
  The lever `relax-shapes` does this; reassociated, because a graph for unknown shapes may choose other
  kernels.
- A short last batch: one more trace in the whole run, not one per step. `batch(..., drop_remainder=True)`
  avoids it and is **semantic**: it drops data. Under XLA every new shape also means a new compilation; pad
  or bucket there.

## When it is not worth it
Two or three traces at the start are normal: the first call of a function that creates variables traces
twice by design. `for i in tf.range(n)` is one loop in one graph and does not retrace.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.case import Case, Finding, Fix, Function
from flatout.causes import reading

GROUP = "graph"
LEVERS = ("relax-shapes",)

FEW = 3
"""Retraces that every program may have: a short last batch, training and evaluation."""


def in_run(case: Case) -> Iterator[Finding]:
    guilty = [function for function in case.functions if sum(why.count for why in function.why) >= FEW]
    if not guilty:
        return
    total = sum(_retraces(function) for function in guilty)
    cost = reading.tracing_ms(case)
    for function in guilty:
        why = function.why[0]
        python = "(Python" in why.after
        yield from reading.finding(
            "retracing",
            case,
            f"{function.name} was traced {function.traces} times, because its argument {why.argument} changes "
            f"({_short(why.before)} → {_short(why.after)}).",
            cost_ms=cost * _retraces(function) / total,
            where=why.where or function.where,
            evidence=[
                reading.number("tracing", cost, "ms", "per step, spent tracing", "hook"),
                reading.number("traces", function.traces, "traces", f"in {function.calls} calls", "hook"),
            ],
            fixes=[
                Fix(f"Pass {why.argument} as a tensor, or keep it in a tf.Variable.")
                if python
                else Fix(
                    "Allow the shape to vary: reduce_retracing=True, or an input_signature with None.",
                    lever="relax-shapes",
                    equivalence="reassociated",
                )
            ],
            estimate="measured by hooks on tracing",
        )


def _retraces(function: Function) -> int:
    return sum(why.count for why in function.why)


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "…"
