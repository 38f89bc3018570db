"""A switch meant for debugging is still on and checks, prints or records in every step.

## What it is
`tf.debugging.enable_check_numerics()`, `tf.debugging.experimental.enable_dump_debug_info(...)`,
`tf.data.experimental.enable_debug_mode()`, `tf.debugging.set_log_device_placement(True)`, a `tf.print` or
an assertion in the step, a profiler or a histogram summary for every batch.

## Why it costs
Numeric checks add an operation after every float operation and keep neighbours from being fused. Debug mode
runs the data pipeline in Python, without parallelism. `tf.print` gives a graph an order that it would
otherwise not need and, in a `map`, keeps the map serial. Recording writes to disk while the step waits.

## How it looks
```python
tf.debugging.enable_check_numerics()       # for last month's NaN
tf.data.experimental.enable_debug_mode()
board = keras.callbacks.TensorBoard("logs", histogram_freq=1, update_freq="batch", profile_batch=(1, 10_000))
model.fit(dataset, callbacks=[board])
```

## The cure
Remove the switches; let the recording be sparse:
```python
board = keras.callbacks.TensorBoard("logs", update_freq="epoch", profile_batch=(20, 30))
model.fit(dataset, callbacks=[board])
```
- `no-debug`: reassociated, as graphs may fuse what ran op by op. What is lost is the check itself: a NaN is no
  longer caught where it arises.

## When it is not worth it
While the fault is being hunted. A cheap check may stay for good: `keras.callbacks.TerminateOnNaN` looks at
the loss only. See `run-eagerly` for the switch that turns off graphs altogether.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.case import Case, Finding, Fix
from flatout.causes import reading

GROUP = "graph"
LEVERS = ("no-debug",)

CHECKS = (
    "CheckNumerics",
    "CheckNumericsV2",
    "DebugNumericSummaryV2",
    "DebugIdentityV2",
    "DebugIdentityV3",
    "Print",
    "PrintV2",
    "Assert",
)


def in_run(case: Case) -> Iterator[Finding]:
    for item in case.evidence_of("switch"):
        if "False" in item.data["given"]:
            continue
        if item.value == "tf.config.run_functions_eagerly":
            cost = reading.part_ms(case, "python", "idle")
            text = "tf.config.run_functions_eagerly(True) switches every tf.function off."
        elif item.value == "tf.data.experimental.enable_debug_mode":
            cost = reading.part_ms(case, "input")
            text = "tf.data runs in debug mode: eagerly, element by element, without any rewrite."
        elif item.value in (
            "tf.debugging.enable_check_numerics",
            "tf.debugging.experimental.enable_dump_debug_info",
        ):
            cost = sum(op.self_ms for op in case.ops if op.type in CHECKS or "CheckNumerics" in op.name)
            idle = reading.part_ms(case, "idle", "python")
            checks = sum(op.count for op in case.ops if op.type in CHECKS)
            cost += idle * checks / max(sum(op.count for op in case.ops), 1.0)
            text = f"{item.value} checks the output of every op."
        elif item.value == "tf.debugging.set_log_device_placement":
            cost = reading.part_ms(case, "python") * 0.5
            text = "The placement of every op is logged."
        else:
            continue
        yield from reading.finding(
            "debug-left-on",
            case,
            text,
            cost_ms=cost,
            where=item.where,
            evidence=[reading.number("debugging", cost, "ms", "per step", "trace")],
            fixes=[Fix("Switch it on only while looking for a bug.", lever="no-debug")],
            confidence="medium",
            estimate="what the trace shows of it",
        )
