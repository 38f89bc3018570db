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
Remove the switches, and record less often:
```python
board = keras.callbacks.TensorBoard("logs", update_freq="epoch", profile_batch=(20, 30))
model.fit(dataset, callbacks=[board])
```
- `no-debug`: reassociated, as graphs may fuse what ran op by op. What is lost is the check itself: a NaN is no
  longer caught where it arises.

## When it is not worth it
While you look for the fault. A cheap check may stay: `keras.callbacks.TerminateOnNaN` looks at
the loss only. See `run-eagerly` for the switch that turns off graphs altogether.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._debugging import under_debug_flag
from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.model.evidence.program import Switch
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import constant, keyword
from flatout.source.repairs import DeleteStatement, DropArgument, Repair, SetArgument

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
    last_call = {item.name: item for item in case.evidence_of(Switch)}  # what was switched off again costs nothing
    for item in last_call.values():
        if item.is_off:
            continue
        if item.name == "tf.config.run_functions_eagerly":
            cost = queries.part_ms(case, "python", "idle")
            text = "tf.config.run_functions_eagerly(True) switches every tf.function off."
        elif item.name == "tf.data.experimental.enable_debug_mode":
            cost = queries.part_ms(case, "input")
            text = "tf.data runs in debug mode: eagerly, element by element, without any rewrite."
        elif item.name in (
            "tf.debugging.enable_check_numerics",
            "tf.debugging.experimental.enable_dump_debug_info",
        ):
            cost = sum(op.self_ms for op in case.ops if op.type in CHECKS or "CheckNumerics" in op.name)
            idle = queries.part_ms(case, "idle", "python")
            checks = sum(op.count for op in case.ops if op.type in CHECKS)
            cost += idle * checks / max(sum(op.count for op in case.ops), 1.0)
            text = f"{item.name} checks the output of every op."
        elif item.name == "tf.debugging.set_log_device_placement":
            cost = queries.part_ms(case, "python") * 0.5
            text = "The placement of every op is logged."
        else:
            continue
        yield from queries.finding(
            "debug-left-on",
            case,
            text,
            cost_ms=cost,
            where=item.where,
            evidence=[queries.number("debugging", cost, "ms", "per step", "trace")],
            fixes=[Fix("Switch it on only while looking for a bug.", lever="no-debug")],
            confidence="medium",
            estimate="what the trace shows of it",
        )


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

SWITCHES = {
    "tensorflow.config.run_functions_eagerly": "switches every tf.function off",
    "tensorflow.config.experimental_run_functions_eagerly": "switches every tf.function off",
    "tensorflow.debugging.enable_check_numerics": "checks the output of every operation",
    "tensorflow.debugging.experimental.enable_dump_debug_info": "writes down every operation",
    "tensorflow.data.experimental.enable_debug_mode": "runs tf.data eagerly, element by element",
    "tensorflow.debugging.set_log_device_placement": "logs the device of every operation",
}
_COSTLY = ("run_functions_eagerly", "experimental_run_functions_eagerly", "enable_debug_mode")
"""What takes a program's speed away as a whole. The others are mostly on for a reason."""


@pattern("switch", calls=tuple(name.rpartition(".")[2] for name in SWITCHES))
def _switch(call: ast.Call, site: Site) -> Iterator[Match]:
    """`tf.config.run_functions_eagerly(True)` and similar switches, not under a flag and not switched off again."""
    name = site.dotted(call.func)
    if name not in SWITCHES or not isinstance(site.statement, ast.Expr):
        return
    if any(isinstance(item, ast.If) and "__name__" not in ast.unparse(item.test) for item, _ in site.arms):
        return  # on purpose, under a flag
    last = name.rpartition(".")[2]
    if call.args and constant(call.args[0]) is not True and "enable" not in last:
        return
    if not call.args and not call.keywords and "eagerly" in last:
        return
    if any(other.args and constant(other.args[0]) is not True for other, _ in site.module.calls_by_name[last]):
        return  # switched off again
    if min(site.module.calls_by_name[last], key=lambda item: item[0].lineno)[0] is not call:
        return  # reported once per file
    if f"disable_{last.removeprefix('enable_')}" in site.module.text:
        return
    yield Match(
        call,
        f"{name.replace('tensorflow', 'tf')} {SWITCHES[name]}.",
        "Switch it on only while looking for a bug.",
        "reassociated",
        repair=Repair(DeleteStatement(), assumes="no code needs eager values, and nobody reads what it reports")
        if len(site.module.calls_by_name[last]) == 1 and last != "set_log_device_placement"
        else None,
        report_at=site.statement,
        confidence="medium" if last in _COSTLY and _has_steps(site) else "low",
    )


def _has_steps(site: Site) -> bool:
    """Whether the file trains, or may: it does not only convert or export a model."""
    calls = site.module.calls_by_name.keys()
    aside = {"convert", "from_keras_model", "from_saved_model", "convert_variables_to_constants_v2"}
    return not calls & aside or bool(calls & {"fit", "GradientTape", "apply_gradients"})


@pattern("log-placement", calls=("ConfigProto",), words=("log_device_placement",), most="low")
def _log_placement(call: ast.Call, site: Site) -> Iterator[Match]:
    """`ConfigProto(log_device_placement=True)`"""
    if constant(keyword(call, "log_device_placement")) is True and not under_debug_flag(site):
        yield Match(
            call,
            "log_device_placement=True writes a line for every operation that is placed.",
            "Leave it out, unless placement is being looked at.",
            repair=Repair(DropArgument("log_device_placement"), assumes="nobody reads the log"),
            report_at=keyword(call, "log_device_placement"),
            confidence="low",
        )


@pattern(
    "record-every-batch",
    calls=("TensorBoard", "ModelCheckpoint"),
    words=("update_freq", "save_freq", "profile_batch"),
    seldom=True,
)
def _record_every_batch(call: ast.Call, site: Site) -> Iterator[Match]:
    """Callbacks that write after each batch, or profile thousands of them."""
    if not site.dotted(call.func).startswith("keras.callbacks."):
        return
    often = keyword(call, "update_freq")
    value = constant(often)
    if value == "batch" or (isinstance(value, int) and 0 < value <= 2):
        yield Match(
            call,
            "TensorBoard writes its summaries after every batch.",
            'Write once per epoch, or every hundred batches: update_freq="epoch".',
            "semantic",
            repair=Repair(SetArgument("update_freq", '"epoch"'), assumes="nobody reads the curve of single batches"),
            report_at=often,
            confidence="low",
        )
    saves = keyword(call, "save_freq")
    number = constant(saves)
    if isinstance(number, int) and 0 < number <= 10:
        yield Match(
            call,
            f"The model is saved after every {number} batch{'es' if number > 1 else ''}.",
            'save_freq counts batches: "epoch", or some thousands.',
            "semantic",
            report_at=saves,
        )
    window = keyword(call, "profile_batch")
    if window is not None and _long(window):
        yield Match(
            call,
            "The profiler records hundreds of batches; each of them is slower for it.",
            "Some ten batches tell the same: profile_batch=(20, 30).",
            report_at=window,
        )


def _long(node: ast.expr) -> bool:
    value = constant(node)
    ends: list[object] = [constant(item) for item in node.elts] if isinstance(node, (ast.Tuple, ast.List)) else []
    if isinstance(value, str):
        ends = [int(part) for part in value.split(",") if part.strip().isdigit()]
    return len(ends) == 2 and all(isinstance(end, int) for end in ends) and ends[1] - ends[0] >= 200  # type: ignore[operator]


CAUSE = Cause(
    group="graph",
    cures=("no-debug",),
    explains=("step-overhead",),
    in_run=in_run,
    patterns=(_switch, _log_placement, _record_every_batch),
)
