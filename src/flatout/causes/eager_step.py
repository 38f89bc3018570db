"""The training step runs eagerly: Python dispatches every operation of it, one by one, in every step.

## What it is
A custom loop that computes the loss, the gradients and the update outside any `tf.function`.

## Why it costs
An eager operation costs some tens of microseconds of Python and dispatch before it computes anything, and a
step has hundreds or thousands of them. TensorFlow sees one operation at a time and can neither fuse nor
reorder them. On one machine the step of a tiny model took 9363 µs eagerly and 502 µs as a `tf.function`; a
whole script with a small convolutional model became 1.55 times as fast.

## How it looks
```python
for images, labels in dataset:
    with tf.GradientTape() as tape:
        loss = loss_function(labels, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
```

## The cure
```python
@tf.function
def step(images, labels):
    with tf.GradientTape() as tape:
        loss = loss_function(labels, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss

for images, labels in dataset:
    loss = step(images, labels)
```
- `function`: reassociated. The same operations may be fused or reordered, so losses agree to rounding (4e-7
  seen). Python side effects in the step (prints, lists, counters) happen only while tracing: move them out.
- `extract-step`: the same for a step that stands in the loop itself; an edit of the source, tried as such.
- `traced-calls`: for calls of models alone, where what stands around them cannot be in a graph.
- `xla` on top may fuse more. Measure it: on a small CPU script it made things several times slower.

## When it is not worth it
When a step runs few, large operations, dispatch hides behind the arithmetic. A step whose Python control
flow changes from call to call would be traced again and again: see `retracing`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from flatout.causes._sample_loops import eager_loops
from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix, Where
from flatout.model.evidence.program import Switch
from flatout.model.evidence.steps import EagerTape
from flatout.source import context
from flatout.source.analysis import datasets, drawn_numbers, loops, meant_steps, programs
from flatout.source.analysis.patterns import Confidence, Match, pattern
from flatout.source.analysis.scopes import FUNCTIONS, Loop, Module, Scope, Site
from flatout.source.analysis.syntax import last_name
from flatout.source.analysis.traced_functions import is_traced, traced
from flatout.source.repairs import Decorate, LeverEdit, Repair

if TYPE_CHECKING:
    from flatout.source.editing.project import Project

MOST_STEPS = 0.5
"""A tape that fewer of the steps have belongs to something else that the program trains."""


def in_run(case: Case) -> Iterator[Finding]:
    kind = queries.step_kind(case)
    if kind not in ("apply", "tape", "model") or _functions_switched_off(case):
        return
    overhead = queries.part_ms(case, "python", "idle")
    loop = next(iter(eager_loops(case)), None)
    if loop is not None:
        overhead /= loop.samples  # what remains once the samples go through together
    per_step = sum(op.count for op in case.ops if op.name == op.type)
    where = _place(case, kind)
    yield from queries.finding(
        "eager-step",
        case,
        "The model is called eagerly: Python dispatches its ops one by one."
        if kind == "model"
        else "The training step runs eagerly: Python dispatches its ops one by one.",
        cost_ms=overhead,
        where=where,
        evidence=[
            queries.number("dispatch", overhead, "ms", "of a step is Python and dispatch, not computing", "trace"),
            queries.number("ops", per_step, "ops/step", "dispatched from Python", "trace"),
        ],
        fixes=[_fix(where, kind)],
        estimate="all time of the step that is not computing; tracing removes nearly all of it",
    )


def _fix(where: Where | None, kind: str) -> Fix:
    in_a_loop = where is not None and where.code is not None and not where.code.startswith(("def ", "async def ", "@"))
    if in_a_loop and kind == "model":
        call = "Call the model through a tf.function: f = tf.function(model); f(x)."
        return Fix(call, lever="traced-calls", equivalence="reassociated")
    if in_a_loop:
        text, lever = "Move the step into a function with @tf.function.", "extract-step"
    else:
        text, lever = "Decorate the step function with @tf.function.", "function"
    return Fix(text, lever=lever, edit="@tf.function", equivalence="reassociated")


def _functions_switched_off(case: Case) -> bool:
    return any(item.name == "tf.config.run_functions_eagerly" and not item.is_off for item in case.evidence_of(Switch))


def _place(case: Case, kind: str) -> Where | None:
    """The `def` to decorate: the function around the tape, or around the call of the model; else the tape itself."""
    often = [item for item in case.evidence_of(EagerTape) if item.per_step >= MOST_STEPS]
    tapes = sorted(often, key=lambda item: -item.per_step)
    chosen = tapes[0] if tapes and kind != "model" else queries.step_stack(case)
    stack = chosen.stack if chosen is not None else ()
    if not stack:
        return case.steps.where if case.steps else None
    file, line, function, _ = stack[0]
    loop = context.innermost_loop(file, line) if kind != "model" else None
    in_a_loop = loop is not None and loop.in_function == function  # then the function holds the whole training
    if function in ("<module>", "<lambda>") or in_a_loop or (kind == "model" and len(stack) == 1):
        return context.where(file, context.tape_line(file, line) or line, function)
    return context.where(file, context.definition_line(file, line) or line, function)


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

_STEP = re.compile(r"train|update|learn|optimi[sz]|step|replay|fit", re.IGNORECASE)
_MANY = 20_000
"""Eager steps of a few operations without a model: half a minute."""
_FEW = 1000
"""Eager steps that a run makes in a second or two: a demonstration of gradients."""
_OF_TENSORS = ("numpy", "append", "watch", "gradient", "format", "item", "print", "len", "range", "float", "int", "zip")
"""What a step by hand calls besides operations."""
_MAKES = re.compile(r"_?(create|make|build|get)_")
_ASSUMED = "no other file changes what the step reads from Python"
_MOST_TAPES = 20
"""Of a step that becomes a function. Nobody writes more by hand, and from each tape to each update there may be one."""


@pattern("tape-outside-function", nodes=(ast.With,), words=("GradientTape",), often_in=programs.trains_in_earnest)
def _tape_outside_function(node: ast.With, site: Site) -> Iterator[Match]:
    """A tape and an update of the optimizer, again and again, in code that nothing traces."""
    if not any(_is_tape(item.context_expr, site) for item in node.items) or is_traced(site):
        return
    if any(scope.name == other.name for scope in site.scope.around() for other in traced(site.module).made):
        return  # shown eagerly first: another cell, or another branch, has it traced
    if any(_is_tape(item.context_expr, site) for around in site.withs for item in around.items):
        return  # a tape inside another: the outer one is the step's
    scope = next((around for around in site.scope.around() if isinstance(around.node, FUNCTIONS)), None)
    here = scope if scope is not None else site.scope
    if scope is not None and _handed_out(scope):
        return  # who calls it may trace it
    looped = [loop for loop in site.loops if not loops.is_short(loop, 1)]
    apart = scope is not None and not looped and _applied_by_caller(scope)
    if not apart and not _updates(here, node, looped):
        return
    again = bool(looped) or (
        scope is not None
        and (loops.called_in_loop(scope) or (_STEP.search(scope.name) and not _MAKES.match(scope.name)))
    )
    if not again:
        return
    few = loops.all_turns(site) if looped and site.scope is here else None
    if scope is None or looped:
        yield Match(
            node,
            "The training step in this loop runs eagerly: Python dispatches its operations one by one.",
            "Move the step into a function with @tf.function.",
            "reassociated",
            repair=_taken_out(node, site),
            unless_traced=scope.name if scope is not None else "",
            confidence=_sureness(node, site, few),
        )
        return
    if apart:
        yield Match(
            scope.node,
            f"The training step runs eagerly, in {scope.name} and where its gradients are applied: "
            "Python dispatches its operations one by one.",
            "Make one @tf.function of both.",
            "reassociated",
            unless_traced=scope.name,
            report_at=_header(scope),
            confidence=_sureness_of_function(node, scope, site),
        )
        return
    against = _against_tracing(scope)
    yield Match(
        scope.node,
        f"The training step {scope.name} runs eagerly: Python dispatches its operations one by one.",
        "Decorate it with @tf.function." if against is None else f"Make a @tf.function of it. First: {against}.",
        "reassociated",
        repair=Repair(Decorate("tensorflow.function"), assumes=_ASSUMED) if against is None else _taken_out(node, site),
        unless_traced=scope.name,
        report_at=_header(scope),
        confidence=_sureness_of_function(node, scope, site),
    )


def _applied_by_caller(scope: Scope) -> bool:
    """Whether a function returns gradients, and each turn of a loop that calls it applies them."""
    if not any(_is_gradient(part, site) for item, site in scope.facts.returns for part in _parts(item.value)):
        return False
    return any(
        last_name(other.func) == "apply_gradients" and where.loops == site.loops
        for call, site in scope.module.calls_by_name.get(scope.name, ())
        if site.loops and scope.module.function_of(call.func, site) is scope
        for other, where in site.scope.facts.calls
    )


def _parts(value: ast.expr | None) -> list[ast.expr]:
    return value.elts if isinstance(value, ast.Tuple) else [value] if value is not None else []


def _is_gradient(value: ast.expr, site: Site) -> bool:
    """`tape.gradient(…)`, also by a name."""
    if isinstance(value, ast.Name):
        bound = datasets.binding(value.id, site)
        value = bound.value if bound is not None and bound.value is not None else value
    return isinstance(value, ast.Call) and last_name(value.func) == "gradient"


def _taken_out(tape: ast.With, site: Site) -> Repair | None:
    """The edit that makes a function of the statements from the tape to the update, where it can be made."""
    from flatout.source.editing.dataflow import arguments
    from flatout.source.editing.decorated import has_variables, several
    from flatout.source.editing.step_blocks import without_moved
    from flatout.source.editing.step_search import Search
    from flatout.source.editing.traceable import arrays_among

    beside = loops.direct_calls(site.loops[-1], site.scope) if site.loops else site.scope.facts.calls
    if sum(_is_tape(call, where) for call, where in beside) > _MOST_TAPES:
        return None
    search = Search(site.module.tree, tape.lineno, unproven=True)
    step = search.found()
    if step is None:
        return None
    given = [item.name for item in step.given]
    if any(arrays_among(given, without_moved(list(step.body), step.split), search.fit)):
        return None
    project = _project(site.module)
    functions = [scope.node.lineno for scope in site.scope.around() if isinstance(scope.node, FUNCTIONS)]
    around = [code for line in functions if (code := project.at(site.module.path, line)) is not None]
    if any(text for code in around for text in several(project, code, among=given)):
        return None
    shared = any(has_variables(code, name) for code in around for name in given if name in arguments(code.node))
    return Repair(
        LeverEdit("extract-step", tape.lineno),
        assumes=_ASSUMED + (", and all calls get the same model" if shared else ""),
    )


def _against_tracing(scope: Scope) -> str | None:
    """Why `@tf.function` alone may not do, by the same rules as the edits of `tune`."""
    from flatout.source.editing.traceable import reason_against

    return reason_against(_project(scope.module), scope.module.path, scope.node.lineno)  # type: ignore[attr-defined]


def _project(module: Module) -> Project:
    """The file as a project of its own, read once."""
    from flatout.source.editing.project import Project

    found = module.__dict__.get("_project")
    if found is None:
        found = module.__dict__["_project"] = Project({module.path: module.text})
    assert isinstance(found, Project)
    return found


def _handed_out(scope: Scope) -> bool:
    """Whether a function is made inside another one, which returns it or passes it on."""
    outer = scope.parent
    if outer is None or not outer.is_function:
        return False
    called = sum(isinstance(c.func, ast.Name) and c.func.id == scope.name for c, _ in outer.facts.calls)
    loads = sum(isinstance(n, ast.Name) and n.id == scope.name for n in ast.walk(outer.node))
    return loads > called


def _sureness(tape: ast.With, site: Site, few: int | None) -> Confidence:
    """Low for a demonstration: some hundred steps, or a few weights by hand."""
    with_model = _has_model(tape, site)
    if (
        meant_steps.is_meant(site, tape.lineno)
        or meant_steps.is_fragment(site)
        or meant_steps.is_debugged(site)
        or meant_steps.is_traced_as_well(tape, site)
    ):
        return "low"
    if few is not None and few <= (_FEW if with_model and not drawn_numbers.is_made_up(tape, site) else _MANY):
        return "low"
    if any(drawn_numbers.goes_through_numbers(loop, site) for loop in site.loops):
        return "low"
    return "low" if not with_model and ("load_iris" in site.module.text or drawn_numbers.is_toy(site)) else "high"


def _sureness_of_function(tape: ast.With, scope: Scope, site: Site) -> Confidence:
    """Low where it is meant, or where this file shows that a run makes some hundred steps."""
    if (
        meant_steps.is_meant(site, scope.extent()[0])
        or meant_steps.is_debugged(site)
        or meant_steps.predicts(scope)
        or meant_steps.is_traced_as_well(tape, site)
    ):
        return "low"
    count = loops.all_calls(scope)
    if count is not None and count <= (_FEW if _has_model(tape, site) else _MANY):
        return "low"
    return "high" if loops.called_in_loop(scope) else "medium"


def _has_model(tape: ast.With, site: Site) -> bool:
    """Whether something other than an operation of TensorFlow is called under the tape: a model, a function."""
    calls = (inner for part in tape.body for inner in ast.walk(part) if isinstance(inner, ast.Call))
    return any(
        not site.dotted(call.func).startswith("tensorflow.") and last_name(call.func) not in _OF_TENSORS
        for call in calls
    )


def _is_tape(node: ast.AST, site: Site) -> bool:
    return isinstance(node, ast.Call) and site.dotted(node.func).endswith("GradientTape")


def _updates(scope: Scope, tape: ast.With, looped: list[Loop]) -> bool:
    """Whether the optimizer is called in the same function (and in the same loop, where the tape is in one)."""
    for call, site in scope.facts.calls:
        by_hand = last_name(call.func) == "assign_sub"
        update = _is_update(call) or _updates_inside(call, site)
        if (by_hand or update) and call.lineno >= tape.lineno:
            return not looped or looped[-1] in site.loops or looped[0] in site.loops
    return False


def _is_update(call: ast.Call) -> bool:
    return last_name(call.func) in loops.UPDATES and loops.of_optimizer(call)


def _updates_inside(call: ast.Call, site: Site) -> bool:
    """`self._apply_gradients(gradients)`, a function of this file that calls the optimizer."""
    found = site.module.function_of(call.func, site)
    return found is not None and any(_is_update(inner) for inner, _ in found.facts.calls)


def _header(scope: Scope) -> ast.AST:
    """The `def` line alone: a whole function is too much to point at."""
    node = scope.node
    assert isinstance(node, FUNCTIONS)
    return ast.Pass(
        lineno=node.lineno,
        col_offset=node.col_offset,
        end_lineno=node.lineno,
        end_col_offset=node.col_offset + len("def ") + len(node.name),
    )


CAUSE = Cause(
    group="graph",
    cures=("function", "extract-step", "traced-calls", "xla"),
    explains=("gpu-idle", "step-overhead"),
    in_run=in_run,
    patterns=(_tape_outside_function,),
)
