"""Eager execution was switched on for a Keras model or for all of TensorFlow, and was left on.

## What it is
`model.compile(run_eagerly=True)` or `tf.config.run_functions_eagerly(True)`: switches for debugging that
turn each `tf.function` back into plain Python.

## Why it costs
`fit` then dispatches every operation of every layer from Python, in each step, and nothing is fused or
reordered. Switching it off made a whole script 2.72 times as fast on one machine, its start included.

## How it looks
```python
tf.config.run_functions_eagerly(True)      # to step through the loss with a debugger, months ago
model.compile(optimizer="adam", loss=my_loss, run_eagerly=True)
model.fit(dataset, epochs=20)
```

## The cure
```python
model.compile(optimizer="adam", loss=my_loss)
model.fit(dataset, epochs=20)
```
- `no-run-eagerly`: reassociated. The losses agree to rounding.
- Code that needs eager values (`.numpy()`, Python `if` on a tensor outside AutoGraph's reach, appending to
  lists) fails or acts only once when traced. flatout tries it and reports the failure where that is so; the
  code in question is then the thing to rewrite.

## When it is not worth it
While debugging. To look into one function only, keep the rest traced: `tf.print` works in graphs, and
`run_eagerly` can be set for a single short run on a few batches.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._debugging import named_for_debugging, under_debug_flag
from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.model.evidence.program import ModelCompiled, Switch
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Module, Site
from flatout.source.analysis.syntax import constant, keyword
from flatout.source.repairs import DeleteStatement, DropArgument, Repair


def in_run(case: Case) -> Iterator[Finding]:
    if queries.step_kind(case) not in ("fit", "predict", "evaluate") or not queries.runs_eagerly(case):
        return
    if any(item.name == "tf.config.run_functions_eagerly" for item in case.evidence_of(Switch)):
        return  # debug-left-on names that line
    if not _dispatches_ops(case):
        return  # compiled again without it after a first look
    overhead = queries.part_ms(case, "python", "idle")
    asked = [item for item in case.evidence_of(ModelCompiled) if item.run_eagerly]
    yield from queries.finding(
        "run-eagerly",
        case,
        "The model was compiled with run_eagerly, so every op of every step is dispatched from Python.",
        cost_ms=overhead,
        where=asked[-1].where if asked else (case.steps.where if case.steps else None),
        evidence=[
            queries.number("dispatch", overhead, "ms", "of a step is Python and dispatch, not computing", "trace")
        ],
        fixes=[Fix("Remove run_eagerly=True.", lever="no-run-eagerly", equivalence="reassociated")],
        estimate="all time of the step that is not computing",
    )


def _dispatches_ops(case: Case) -> bool:
    """Whether Python starts the ops of the traced steps one by one: such an op is named after its type."""
    eager = sum(op.count for op in case.ops if op.name == op.type)
    return not case.ops or eager >= 0.5 * sum(op.count for op in case.ops)


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

_USES = ("fit", "fit_generator", "train_on_batch", "evaluate", "test_on_batch")
"""What the switch is for: these run the compiled step."""


@pattern("compile", calls=("compile",), words=("run_eagerly",))
def _compile(call: ast.Call, site: Site) -> Iterator[Match]:
    """`model.compile(…, run_eagerly=True)`"""
    if (
        constant(keyword(call, "run_eagerly")) is True
        and not under_debug_flag(site)
        and not named_for_debugging(_model(call))
    ):
        yield Match(
            call,
            "run_eagerly=True makes Python dispatch every operation of every step.",
            "Leave it out, unless a bug is being looked for.",
            "reassociated",
            repair=Repair(DropArgument("run_eagerly"), assumes="no layer, loss or metric needs eager values"),
            report_at=keyword(call, "run_eagerly"),
            confidence="low" if _is_shown(call, site) or _is_never_used(call, site) else "high",
        )


@pattern("attribute", nodes=(ast.Assign,), words=("run_eagerly",))
def _attribute(node: ast.Assign, site: Site) -> Iterator[Match]:
    """`model.run_eagerly = True`"""
    target = node.targets[0]
    if not isinstance(target, ast.Attribute) or target.attr != "run_eagerly" or constant(node.value) is not True:
        return
    if len(node.targets) == 1 and not under_debug_flag(site) and ast.unparse(target.value) != "self":
        yield Match(
            node,
            "run_eagerly = True makes Python dispatch every operation of every step.",
            "Delete the line, unless a bug is being looked for.",
            "reassociated",
            repair=Repair(DeleteStatement(), assumes="no layer, loss or metric needs eager values"),
        )


def _is_shown(call: ast.Call, site: Site) -> bool:
    """Whether the file compiles the same model without it as well, to show the difference."""
    return ast.unparse(call.func) in site.module.once(_compiled_without, site.module)


def _compiled_without(module: Module) -> frozenset[str]:
    """How the calls of `compile` are written that do not give the argument."""
    calls = module.calls_by_name["compile"]
    return frozenset(ast.unparse(call.func) for call, _ in calls if keyword(call, "run_eagerly") is None)


def _is_never_used(call: ast.Call, site: Site) -> bool:
    """Whether the file trains with tapes of its own, or compiles to load weights only: the switch then does nothing."""
    named = site.module.calls_by_name
    if any(name in named for name in _USES):
        return False
    model = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    return f"{model}.load_weights" in site.module.once(_loads, site.module) or "GradientTape" in named


def _loads(module: Module) -> frozenset[str]:
    """How the calls of `load_weights` are written."""
    return frozenset(ast.unparse(call.func) for call, _ in module.calls_by_name.get("load_weights", ()))


def _model(call: ast.Call) -> str:
    """`eager_model.compile(…)` shows by its name that it is on purpose."""
    return ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""


CAUSE = Cause(
    group="graph",
    cures=("no-run-eagerly",),
    explains=("gpu-idle", "step-overhead"),
    in_run=in_run,
    patterns=(_compile, _attribute),
)
