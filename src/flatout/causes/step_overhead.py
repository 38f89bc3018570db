"""The steps are so short that starting them takes longer than computing them.

## What it is
Between two steps the program returns to Python: callbacks, metrics, the progress bar, the next call. With a
small model or a small batch that pause is longer than the step's own work.

## Why it costs
The pause is about the same for each step, whatever the step computes, so small steps pay it most often. On
one machine a Keras `fit` with a small batch took 2394 µs per step, and 1094 µs with eight steps per call.

## How it looks
```python
model.compile(optimizer="adam", loss="mse")
model.fit(features, targets, batch_size=16, epochs=10)     # 0.4 ms of computing, 2 ms of everything else
```

## The cure
```python
model.compile(optimizer="adam", loss="mse", steps_per_execution=16)
model.fit(features, targets, batch_size=16, epochs=10)
```
In a custom loop, let the traced function take several batches: `for batch in dataset.take(16)` inside a
`tf.function` becomes a loop in the graph.
- `steps-per-execution`: reassociated; the same updates in the same order. Callbacks and logs come once per
  call instead of once per step.
- `xla` fuses small operations into fewer kernels: reassociated. Measure it, it can be slower.
- `batch-size`: **semantic**. A larger batch is another training recipe; the learning rate usually has to
  follow.

## When it is not worth it
When steps take tens of milliseconds, the pause does not show. When a callback must act after each step,
grouping steps changes what it sees.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.case import Case, Evidence, Finding, Fix
from flatout.causes import (
    feed_dict,
    function_per_call,
    host_sync,
    predict_in_loop,
    reading,
    retracing,
    tensor_reconversion,
)

GROUP = "graph"
LEVERS = ("steps-per-execution", "xla", "batch-size")
YIELDS_TO = (
    "retracing",
    "function-per-call",
    "host-sync",
    "tensor-reconversion",
    "predict-in-loop",
    "eager-step",
    "run-eagerly",
    "feed-dict",
    "debug-left-on",
    "python-in-pipeline",
    "per-sample-loop",
    "sequential-loop",
    "unrolled-loop",
    "legacy-pipeline",
)

SMALL_MS = 20.0
MATTERS = 0.25


def in_run(case: Case) -> Iterator[Finding]:
    kind = reading.step_kind(case)
    if kind not in ("fit", "train-function", "function", "session", "predict", "evaluate"):
        return
    if reading.step_fact(case, "run_eagerly"):
        return
    # What the executor spends between small ops stays, however many steps a call makes.
    inside = sum(float(item.value or 0.0) for item in case.evidence_of("executor"))
    overhead = max(reading.part_ms(case, "python", "idle") - inside, 0.0)
    if reading.share(case, overhead) < MATTERS:
        return
    evidence = [
        reading.number("python", reading.part_ms(case, "python"), "ms", "between the calls", "trace"),
        reading.number("runtime", overhead - reading.part_ms(case, "python"), "ms", "to start the call", "trace"),
    ]
    if reading.step_ms(case) > SMALL_MS:
        yield from _python_between(case, evidence)
        return
    several = reading.step_fact(case, "steps_per_execution")
    fixes = [Fix("Run several steps a call: compile(steps_per_execution=…).", lever="steps-per-execution")]
    if kind != "fit" or (isinstance(several, int) and several > 1):
        more = "Do more in each call: a larger batch, or several steps inside one tf.function."
        fixes = [Fix(more, lever="batch-size", equivalence="semantic")]
    yield from reading.finding(
        "step-overhead",
        case,
        f"A step computes for {reading.part_ms(case, 'compute'):.2f} ms of its {reading.step_ms(case):.2f} ms; "
        "the rest is the cost of starting it.",
        cost_ms=overhead,
        where=case.steps.where if case.steps else None,
        evidence=evidence,
        fixes=fixes,
        confidence="medium",
        estimate="the time between the calls, and in them before and after the graph runs",
    )


def _python_between(case: Case, evidence: list[Evidence]) -> Iterator[Finding]:
    """A long step in which Python itself works between the calls: the line that it works on is known from samples."""
    python = reading.part_ms(case, "python")
    special = (host_sync, tensor_reconversion, predict_in_loop, function_per_call, retracing, feed_dict)
    named = any((item.cost_share or 0.0) >= 0.05 for cause in special for item in cause.in_run(case))
    if reading.share(case, python) < MATTERS or named:
        return
    step = case.steps.where if case.steps else None
    lines = [item for item in case.evidence_of("line-time") if item.where is not None and item.where != step]
    yield from reading.finding(
        "step-overhead",
        case,
        f"Python works for {python:.1f} ms of each step between the calls into TensorFlow.",
        cost_ms=python,
        where=lines[0].where if lines else step,
        evidence=[*evidence[:1], *lines[:2]],
        fixes=[Fix("Move this work into the step, into the input pipeline, or do it every hundredth step.")],
        confidence="medium",
        estimate="time of the step in which Python runs and nothing computes",
    )
