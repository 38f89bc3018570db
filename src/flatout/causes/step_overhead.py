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
- `direct-batch`: reassociated; `train_on_batch` sets its metrics back in the graph of the step, not from Python
  before it. The same numbers to the last digit where all batches have one shape.
- `direct-epochs`: reassociated; epochs of `fit` that are one batch each call the training step alone.
- `steps-per-execution`: reassociated; the same updates in the same order. Callbacks and logs come once per
  call instead of once per step.
- `repeat-batch`: reassociated; a loop that makes several updates on the same batch becomes one of the graph.
- `prepared-runs`, for `session.run` of TensorFlow 1: exact; what a run fetches and feeds is looked up once.
- `caller-thread`, for the same: exact; small ops run in the thread that calls `run`.
- `xla` fuses small operations into fewer kernels: reassociated. Measure it, it can be slower.
- `batch-size`: **semantic**. A larger batch is another training recipe; the learning rate usually has to
  follow.

## When it is not worth it
When steps take tens of milliseconds, the pause does not show. When a callback must act after each step,
grouping steps changes what it sees.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._run_parts import lines_between_epochs, lines_told_elsewhere, told_of_each_step_ms
from flatout.causes._spec import Cause
from flatout.model import queries, ranks
from flatout.model.case import Case, Finding, Fix, Where
from flatout.model.evidence.graphs import Executor
from flatout.model.evidence.program import BATCH_METHODS, KerasCall
from flatout.model.evidence.steps import LineTime, Stream, ThreadWait
from flatout.source import context
from flatout.source.analysis import datasets
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import argument, constant, keyword, takes_unknown
from flatout.source.editing import repeated_steps

SMALL_MS = 20.0
MATTERS = 0.25
OWN_MATTERS = 0.12
"""The same for Python on lines of the program's own that samples have named: there it is plain what to change."""


def starting_calls(case: Case) -> Iterator[Finding]:
    """Small steps: Python and the runtime need more time to start a call than the call computes."""
    if not _is_traced(case) or ranks.coordinates(case):
        return
    # What the executor spends between small ops stays, however many steps a call makes.
    inside = sum(item.ms for item in case.evidence_of(Executor))
    # Nor is a step slow to start whose Python waits until that of the pipeline lets go of the interpreter.
    own = sum(_python_of_the_program(case).values())
    python = max(queries.part_ms(case, "python") - own - queries.contended_ms(case), 0.0)
    overhead = max(python + queries.part_ms(case, "idle") - inside, 0.0)
    if queries.share(case, overhead) < MATTERS or queries.step_ms(case) > SMALL_MS:
        return
    yield from queries.finding(
        "step-overhead",
        case,
        f"A step computes for {queries.part_ms(case, 'compute'):.2f} ms of its {queries.step_ms(case):.2f} ms; "
        f"{overhead:.2f} ms is what starting it costs, in Python and in the runtime.",
        cost_ms=overhead,
        where=case.steps.where if case.steps else None,
        evidence=[
            queries.number("python", python, "ms", "between the calls", "trace"),
            queries.number("runtime", max(overhead - python, 0.0), "ms", "to start the call", "trace"),
        ],
        fixes=_fixes(case),
        confidence="medium",
        estimate="the time between the calls, and in them before and after the graph runs",
    )


def _is_traced(case: Case) -> bool:
    """Whether a step is a call of a graph. One that runs eagerly has causes of its own."""
    kinds = ("fit", "train-function", "function", "session", "predict", "evaluate")
    return queries.step_kind(case) in kinds and not queries.runs_eagerly(case)


def _fixes(case: Case) -> list[Fix]:
    if queries.step_kind(case) != "session":
        return [*_less_around_each_call(case), _more_in_each_call(case)]
    return [
        Fix("Let the session look up fetches and feeds once.", lever="prepared-runs", equivalence="exact"),
        Fix("Run small graphs in the calling thread.", lever="caller-thread", equivalence="exact"),
    ]


def _less_around_each_call(case: Case) -> Iterator[Fix]:
    if queries.step_kind(case) == "fit" and any(item.is_one_batch_again for item in case.evidence_of(KerasCall)):
        text = "Call the training step once an epoch: all rows are one batch, and fit sets up each epoch anew."
        yield Fix(text, lever="direct-epochs", equivalence="reassociated")
    if queries.step_kind(case) == "function" and _repeats_a_batch(case):
        text = "Make all updates on one batch in one call: a loop over tf.range inside a tf.function."
        yield Fix(text, lever="repeat-batch", equivalence="reassociated")
    if queries.step_kind(case) in ("train-function", "function") and any(
        item.method in BATCH_METHODS and queries.is_often(case, item.calls) and item.single == item.calls
        for item in case.evidence_of(KerasCall)
    ):
        text = "Reset the metrics inside of the compiled step, not from Python before each train_on_batch."
        yield Fix(text, lever="direct-batch", equivalence="reassociated")


def _repeats_a_batch(case: Case) -> bool:
    trees = ((line, context.tree(file)) for file, line in sorted(queries.stepping_lines(case)) if file and line)
    return any(
        isinstance(repeated_steps.around(tree, line), repeated_steps.RepeatedStep)
        for line, tree in trees
        if tree is not None
    )


def _more_in_each_call(case: Case) -> Fix:
    step = queries.step_stack(case)
    if queries.step_kind(case) == "fit" and not (step is not None and (step.steps_per_execution or 1) > 1):
        return Fix("Run several steps a call: compile(steps_per_execution=…).", lever="steps-per-execution")
    more = "Do more in each call: a larger batch, or several steps inside one tf.function."
    return Fix(more, lever="batch-size", equivalence="semantic")


def _python_of_the_program(case: Case) -> dict[Where, float]:
    """Milliseconds of a step on lines that are not the step's own: numpy, files, callbacks, logging."""
    # Another call of `fit` makes steps as well, those of another model.
    of_keras = {(item.where.file, item.where.line) for item in case.evidence_of(KerasCall) if item.where is not None}
    stepping = queries.stepping_lines(case) | of_keras
    heads = {
        (file, loop.line)
        for file, line in stepping
        if file and line
        for loop in context.enclosing_loops(file, line)  # a loop's head waits for the input
    }
    # Nor is what the program does once an epoch a part of the steps: that has a cost of its own.
    between = {(line.where.file, line.where.line) for line in lines_between_epochs(case) if line.where is not None}
    lines = {
        item.where: queries.lines_ms(case, {(item.where.file, item.where.line)})
        for item in case.evidence_of(LineTime)
        if item.where is not None and (item.where.file, item.where.line) not in stepping | heads | between
    }
    # Samples also hit lines that compute or wait for input; no more of them is Python than the split says.
    python, seen = queries.part_ms(case, "python"), sum(lines.values())
    scale = min(1.0, python / seen) if seen else 0.0
    return {where: ms * scale for where, ms in lines.items()}


def python_between(case: Case) -> Iterator[Finding]:
    """Python itself works between the calls, on lines that are known from samples."""
    if not _is_traced(case) or ranks.coordinates(case):
        return
    told = set(lines_told_elsewhere(case))
    all_of_it = _python_of_the_program(case)
    own = {where: ms for where, ms in all_of_it.items() if (where.file, where.line) not in told}
    elsewhere = max(sum(all_of_it.values()) - sum(own.values()), told_of_each_step_ms(case))
    large = queries.step_ms(case) > SMALL_MS
    python = max(queries.part_ms(case, "python") - elsewhere, 0.0) if large else sum(own.values())
    worth = queries.share(case, python) >= MATTERS or queries.share(case, sum(own.values())) >= OWN_MATTERS
    if not worth:
        return
    lines = sorted(own, key=lambda where: -own[where])
    works = "works"
    fix = _work_elsewhere(case, lines[0] if lines else None)
    if sum(item.share for item in case.evidence_of(ThreadWait)) >= queries.share(case, python) / 2:
        works = "waits for another thread"
        fix = Fix("Make that thread faster: its work as TensorFlow ops in tf.data, in larger pieces, or in processes.")
    yield from queries.finding(
        "step-overhead",
        case,
        f"Python {works} for {python:.1f} ms of each step between the calls into TensorFlow.",
        cost_ms=python,
        where=lines[0] if lines else case.steps.where if case.steps else None,
        evidence=[
            queries.number("python", python, "ms", "between the calls", "trace"),
            *(queries.number("line-time", own[where], "ms", "on this line", "sampling", where) for where in lines[:2]),
        ],
        fixes=[fix],
        confidence="medium",
        estimate="time of the step in which Python runs and nothing computes",
    )


def _work_elsewhere(case: Case, where: Where | None) -> Fix:
    """What to do about the line that works most."""
    code = (where.code or "") if where is not None else ""
    if "set_weights(" in code or "get_weights(" in code:
        return Fix("Copy weights with assigns inside one tf.function: for a, b in zip(…): a.assign(b).")
    calls = {(item.stack[0].file, item.stack[0].line) for item in case.evidence_of(Stream) if item.of == "model"
             and item.stack}  # fmt: skip
    if where is not None and (where.file, where.line) in calls:
        return Fix("Call the model through a tf.function that is made once.", equivalence="reassociated")
    return Fix("Move this work into the step, into the input pipeline, or do it every hundredth step.")


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────


@pattern("one-step-per-call", calls=("compile",), default=False)
def _one_step_per_call(call: ast.Call, site: Site) -> Iterator[Match]:
    """`compile` without steps_per_execution. It pays for short steps only."""
    names = {item.arg for item in call.keywords}
    if takes_unknown(call) or not names & {"loss", "optimizer"} or names & {"steps_per_execution", "run_eagerly"}:
        return
    yield Match(
        call,
        "Each step returns to Python: callbacks, metrics, progress bar.",
        "Where steps are short, steps_per_execution=16 makes one call of many.",
        "reassociated",
        report_at=call.func,
    )


@pattern("batch-of-one", calls=("batch",), default=False)
def _batch_of_one(call: ast.Call, site: Site) -> Iterator[Match]:
    """`.batch(1)`"""
    size = argument(call, 0, "batch_size")
    if (
        constant(size) == 1
        and constant(keyword(call, "drop_remainder")) is object
        and datasets.before(call, site).certain
    ):
        yield Match(
            call,
            "A batch of one sample leaves most of the device without work.",
            "Batch more samples, where memory allows it.",
            "semantic",
            report_at=size,
        )


CAUSE = Cause(
    group="graph",
    cures=(
        "direct-batch",
        "direct-epochs",
        "repeat-batch",
        "steps-per-execution",
        "prepared-runs",
        "caller-thread",
        "xla",
        "batch-size",
    ),
    explains=("gpu-idle",),
    in_run={"python-between": python_between, "starting-calls": starting_calls},
    patterns=(_one_step_per_call, _batch_of_one),
)
