"""The model is called for one sample at a time where it could take the whole batch.

## What it is
A Python or TensorFlow loop over the samples of a batch, with a call of the model, the loss or an
augmentation in each round.

## Why it costs
Kernels are built for batches: a matrix product of one row leaves most of a core's vector units, and nearly
all of an accelerator, without work. Each call also pays the dispatch again. Inside a `tf.function` a Python
loop multiplies the graph as well (`unrolled-loop`).

## How it looks
```python
losses = []
for image, label in zip(images, labels):
    prediction = model(image[tf.newaxis])
    losses.append(loss_function(label[tf.newaxis], prediction))
loss = tf.reduce_mean(losses)
```

## The cure
```python
predictions = model(images)
loss = loss_function(labels, predictions)
```
Where the function takes a single sample only, `tf.vectorized_map(function, elements)` turns it into a
batched one for most operations; samples of different lengths can be padded and masked, or put into ragged
tensors.
- An edit of the source: reassociated for layers that treat samples independently. **Semantic** for layers
  that look across the batch: batch normalization sees other statistics.
- `whole-batch` writes that edit where each turn gives its sample an axis of its own: reassociated, and tried, as
  the numbers of a batch normalization would differ.
- `vectorize-loop` writes that edit for a loop inside the graph whose turns know nothing of each other:
  reassociated.
- `function` around the step keeps the loop but takes Python out of it: reassociated. It is a part of the
  cure.

## When it is not worth it
When samples depend on each other (the next call needs the last result), when they truly have different
shapes and padding would waste more than it saves, or when a batch does not fit in memory.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from flatout.causes._sample_loops import SampleLoop, eager_loops, traced_loops
from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.model.evidence.graphs import GraphLoop, RepeatedOps
from flatout.source import context
from flatout.source.analysis import datasets, loops
from flatout.source.analysis.call_summary import summarize
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import argument, constant, last_name, loaded_names, nested_calls, stored_names
from flatout.source.analysis.traced_functions import is_traced

IN_GRAPH = "inside the graph"


def in_run(case: Case) -> Iterator[Finding]:
    for loop in eager_loops(case):
        overhead = queries.part_ms(case, "python", "idle", "input") + 0.5 * queries.part_ms(case, "compute")
        yield from _finding(case, loop, overhead * (1 - 1 / loop.samples), "eagerly")
    for item, loop in traced_loops(case):
        inside = _inside_ms(case, item)
        overhead = inside + queries.part_ms(case, "idle") * _share_of_ops(case, item)
        yield from _finding(case, loop, overhead * (1 - 1 / loop.samples), IN_GRAPH, item.source)


def _finding(case: Case, loop: SampleLoop, cost: float, how: str, source: str = "trace") -> Iterator[Finding]:
    yield from queries.finding(
        "per-sample-loop",
        case,
        f"A loop takes the batch apart and computes its {loop.samples:.0f} samples one after another {how}.",
        cost_ms=cost,
        where=loop.where,
        evidence=[queries.number("samples", loop.samples, "samples", "go through the loop one by one", source)],
        fixes=[
            Fix(
                "Compute the whole batch at once and reduce over its first axis.",
                lever="vectorize-loop" if how == IN_GRAPH else "whole-batch",
                equivalence="reassociated",
            )
        ],
        confidence="medium",
        estimate="an estimate: the loop's time, paid once instead of once per sample",
    )


def _inside_ms(case: Case, item: RepeatedOps | GraphLoop) -> float:
    if isinstance(item, GraphLoop):
        return item.ms_per_step
    assert item.where is not None
    loop = context.innermost_loop(item.where.file or "", item.where.line or 0)
    if loop is None:
        return 0.0
    return sum(
        op.self_ms
        for op in case.ops
        if op.where is not None and op.where.file == item.where.file and loop.line <= (op.where.line or 0) <= loop.end
    )


def _share_of_ops(case: Case, item: RepeatedOps | GraphLoop) -> float:
    """Which part of the runtime's overhead is the loop's: it grows with the number of ops, not with their size."""
    if isinstance(item, GraphLoop):
        return item.share_of_ops
    return min(item.ops / max(item.graph_ops, 1), 1.0)


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────


_HINTS = ("newaxis", "None", "expand_dims", "GradientTape")
_TAKEN_APART = (
    r"\[(?<![=(,:]\s\[)(?<![=(,:\[]\[)[\s\\(]{0,80}(?:None\b|[\w.\s]{0,80}newaxis)",
    r"expand_dims[\s\\]*\([^\n]{0,200}(?:\n[^\n]{0,200}){0,3}?\b(?:0|False)\b",
    "GradientTape",
)


@pattern("batch-taken-apart", nodes=(ast.For,), words=("newaxis", "expand_dims", "GradientTape"), in_loop=_TAKEN_APART)
def _batch_taken_apart(loop: ast.For, site: Site) -> Iterator[Match]:
    """A loop over the samples of a batch that gives each of them an axis of its own again, or a tape of its own."""
    if not any(word in line for line in site.module.lines[loop.lineno - 1 : loop.end_lineno] for word in _HINTS):
        return
    names = loops.target_names(loop)
    lonely = any(_alone(node, names, loop) for node in ast.walk(loop))
    # A bare name may as well be a dataset, whose batches the loop goes through.
    taped = not isinstance(loop.iter, ast.Name) and any(
        isinstance(node, ast.With) and any("GradientTape" in ast.unparse(item.context_expr) for item in node.items)
        for node in ast.walk(loop)
    )
    if taped and any(last_name(call.func) == "apply_gradients" for call in nested_calls(loop)):
        taped = False  # each turn is a step with a part of the data: five updates of a critic
    if (lonely or taped) and (_takes(loop, _batch_names(site)) or _takes_pairs(loop, site)):
        yield Match(
            loop,
            "The batch is taken apart, and its samples are computed one after the other.",
            "Give the model the whole batch, and reduce over its first axis.",
            "reassociated",
            report_at=loop.iter,
            confidence="low"
            if loops.shows(loop) or any(loops.is_short(outer, 8, site) for outer in site.loops)
            else "high",
        )


def _batch_names(site: Site) -> set[str]:
    """Names that hold a batch: arguments of a traced function, or what a loop over a dataset gives."""
    names: set[str] = set()
    for outer in site.loops:
        if isinstance(outer, ast.For) and loops.over_data(outer, site):
            names |= loops.target_names(outer)
    if is_traced(site) and site.scope.is_function:
        names |= set(site.scope.arguments) - {"self", "cls", "model", "optimizer"}
        for name, binds in site.scope.facts.binds.items():
            for bind in binds:
                if isinstance(bind.value, ast.Name) and bind.value.id in names and bind.part is not None:
                    names.add(name)
    return names


def _takes_pairs(loop: ast.For, site: Site) -> bool:
    """Whether samples and labels of a function's arguments are taken apart together, and each given an axis again."""
    source = loop.iter
    if not isinstance(source, ast.Call) or last_name(source.func) != "zip" or not site.scope.is_function:
        return False
    given = {item.id for item in source.args if isinstance(item, ast.Name)}
    if len(given) < 2 or not given <= set(site.scope.arguments):
        return False
    alone = [n for n in loops.target_names(loop) if any(_alone(node, {n}, loop) for node in ast.walk(loop))]
    return len(alone) >= 2


def _takes(loop: ast.For, batch: set[str]) -> bool:
    """Whether a loop goes through the samples of one of the batches, or through their indices."""
    source = loop.iter
    if isinstance(source, ast.Name):
        return source.id in batch
    if not isinstance(source, ast.Call):
        return False
    if last_name(source.func) in ("zip", "enumerate", "unstack"):
        given = source.args
        if last_name(source.func) == "enumerate" and given and isinstance(given[0], ast.Call):
            given = given[0].args
        return any(isinstance(item, ast.Name) and item.id in batch for item in given)
    if last_name(source.func) == "range":
        index = loops.target_names(loop)
        return any(
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id in batch
            and isinstance(node.slice, ast.Name)
            and node.slice.id in index
            for node in ast.walk(loop)
        )
    return False


def _alone(node: ast.AST, taken: set[str], loop: ast.For) -> bool:
    """`sample[tf.newaxis]`, `sample[None, ...]`, `tf.expand_dims(sample, 0)`, also of `batch[i]`."""
    if isinstance(node, ast.Subscript) and _is_sample(node.value, taken, loop):
        first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
        return last_name(first) == "newaxis" or (isinstance(first, ast.Constant) and first.value is None)
    if isinstance(node, ast.Call) and last_name(node.func) == "expand_dims" and node.args:
        axis = argument(node, 1, "axis")
        return _is_sample(node.args[0], taken, loop) and constant(axis) == 0
    return False


def _is_sample(node: ast.expr, taken: set[str], loop: ast.For) -> bool:
    """The sample itself; where the loop counts, what it picks from the batch: `batch[i]`."""
    counts = isinstance(loop.iter, ast.Call) and last_name(loop.iter.func) == "range"
    if counts:
        return isinstance(node, ast.Subscript) and bool(loaded_names(node.slice) & taken)
    return isinstance(node, ast.Name) and node.id in taken


_FEW = 8
"""Samples that may as well go one by one."""
_BATCH_SIZE = re.compile(
    r"(^|_)(batch_?(size|len|count|dim)?|bs|n(um)?_?(samples?|examples?|images?|batch))$", re.IGNORECASE
)
"""What counts the samples of a batch."""
_COMPUTES = re.compile(
    r"loss|step|train|forward|call|metric|score|accuracy|iou|dice|attention|encode|decode", re.IGNORECASE
)
"""Functions that compute with a batch, by their names."""
_ONE_SAMPLE = (
    *("tensorflow.image.non_max", "tensorflow.image.combined_non_max", "tensorflow.boolean_mask", "tensorflow.unique"),
    *("tensorflow.py_function", "tensorflow.numpy_function", "tensorflow.compat.v1.py_func", "tensorflow.ragged."),
    *("tensorflow.io.", "tensorflow.image.decode", "tensorflow.summary.", "tensorflow.print", "tensorflow.data."),
    *("tensorflow.random.shuffle", "tensorflow.sparse.", "tensorflow.dynamic_partition", "tensorflow.setdiff1d"),
    *("tensorflow.random.categorical", "tensorflow.cond", "tensorflow.while_loop", "tensorflow.math.segment"),
)
"""Operations that are made for one sample: their results have another shape for each."""


@pattern(
    "rows-one-by-one",
    nodes=(ast.For,),
    words=("range",),
    in_loop=(r"\bfor (\w+) in range\((?s:.{1,3000}?)\[\1[\],]",),  # that picks row `i` of something
    of_tensorflow=True,
    seldom=True,
)
def _rows_one_by_one(loop: ast.For, site: Site) -> Iterator[Match]:
    """`for i in range(batch_size)` that computes with row `i` of some tensors, and adds up or collects the results."""
    source = loop.iter
    if not isinstance(source, ast.Call) or not isinstance(source.func, ast.Name) or source.func.id != "range":
        return  # that of `tf.range` is a loop of the graph: see sequential-loop
    if not isinstance(loop.target, ast.Name):
        return
    counted = [item for item in source.args if constant(item) != 0]
    if len(counted) != 1 or loop.orelse or not site.scope.is_function or not _is_computing(site):
        return
    if (count := loops.number(counted[0], site)) is not None and count <= _FEW:
        return
    rows = _rows(loop, loop.target.id)
    if not rows or not _counts_samples(counted[0], {ast.unparse(row.value) for row in rows}, site):
        return
    if _computes(loop, rows, site) and _gathers(loop) and not _carries(loop):
        yield Match(
            loop,
            "The operations of this loop run for one sample of the batch after another.",
            "Give them the whole batch, with the axes of a sample as their axis, and reduce at the end.",
            "reassociated",
            report_at=loop.iter,
            confidence="high" if is_traced(site) else "medium",
        )


def _is_computing(site: Site) -> bool:
    return is_traced(site) or any(scope.is_function and _COMPUTES.search(scope.name) for scope in site.scope.around())


def _rows(loop: ast.For, index: str) -> list[ast.Subscript]:
    """`labels[i]`, `labels[i, :, 0]`: what a turn picks."""
    found = []
    for node in ast.walk(loop):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and not isinstance(node.value, ast.Call):
            first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
            if isinstance(first, ast.Name) and first.id == index:
                found.append(node)
    return found


def _counts_samples(count: ast.expr, picked: set[str], site: Site) -> bool:
    """`batch_size`, or the first length of what is picked from: `x.shape[0]`, `tf.shape(x)[0]`, also by a name."""
    if _BATCH_SIZE.search(last_name(count)):
        return True
    if isinstance(count, ast.Name):
        bound = datasets.binding(count.id, site)
        if bound is None or bound.value is None:
            return False
        if bound.part == 0:
            return _shape_of(bound.value) in picked
        count = bound.value
    if isinstance(count, ast.Subscript) and constant(count.slice) == 0:
        return _shape_of(count.value) in picked
    return False


def _shape_of(node: ast.expr) -> str | None:
    """`x` of `x.shape`, `tf.shape(x)`, `x.get_shape()`, `x.shape.as_list()`."""
    while isinstance(node, ast.Call) and last_name(node.func) in ("as_list", "get_shape") and not node.args:
        if not isinstance(node.func, ast.Attribute):
            return None
        node = ast.Attribute(node.func.value, "shape") if node.func.attr == "get_shape" else node.func.value
    if isinstance(node, ast.Attribute) and node.attr == "shape":
        return ast.unparse(node.value)
    if isinstance(node, ast.Call) and last_name(node.func) in ("shape", "int_shape") and node.args:
        return ast.unparse(node.args[0])
    return None


def _computes(loop: ast.For, rows: list[ast.Subscript], site: Site) -> bool:
    """Whether operations of TensorFlow take what is picked, and none of them is for one sample alone."""
    derived: set[str] = set()
    for statement in ast.walk(loop):
        if isinstance(statement, ast.Assign) and _reads(statement.value, rows, derived):
            derived |= stored_names(statement)
    on_rows = False
    for call in nested_calls(loop):
        done = summarize(call.func, site)
        names = {site.dotted(call.func), *done.names()}
        if any(name.startswith(_ONE_SAMPLE) for name in names) or last_name(call.func) in ("numpy", "predict", "fit"):
            return False
        if site.dotted(call.func) == "tensorflow.where" and len(call.args) + len(call.keywords) == 1:
            return False  # the number of results differs from sample to sample
        of_tensorflow = any(name.startswith(("tensorflow.", "keras.")) for name in names)
        on_rows = on_rows or (of_tensorflow and any(_reads(item, rows, derived) for item in call.args))
    return on_rows


def _reads(node: ast.expr, rows: list[ast.Subscript], derived: set[str]) -> bool:
    return any(inner in rows or (isinstance(inner, ast.Name) and inner.id in derived) for inner in ast.walk(node))


def _gathers(loop: ast.For) -> bool:
    """Whether the turns add up, or put their results into a list or a TensorArray."""
    if any(isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) for node in ast.walk(loop)):
        return True
    return any(last_name(call.func) in ("append", "write") for call in nested_calls(loop)) or any(
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.BinOp)
        and isinstance(node.value.op, ast.Add)
        and isinstance(node.value.left, ast.Name)
        and node.value.left.id in stored_names(node)
        for node in ast.walk(loop)
    )


def _carries(loop: ast.For) -> bool:
    """Whether a turn needs a value of the one before, or ends the loop: then the samples do depend on each other."""
    if any(isinstance(node, (ast.Break, ast.Return, ast.Yield, ast.Try)) for node in ast.walk(loop)):
        return True
    return any(
        isinstance(node, ast.Assign)
        and loaded_names(node.value) & stored_names(node)
        and not isinstance(node.value, ast.BinOp)
        and not (isinstance(node.value, ast.Call) and last_name(node.value.func) in ("write", "concat"))
        and not _first_stored(loop, node)
        for node in ast.walk(loop)
    )


def _first_stored(loop: ast.For, node: ast.Assign) -> bool:
    """Whether the name has got a value in this turn before: `row = x[i]`, `row = tf.reshape(row, …)`."""
    before: set[str] = set()
    for statement in loop.body:
        if statement.lineno >= node.lineno:
            break
        if isinstance(statement, ast.Assign):
            before |= stored_names(statement)
    return stored_names(node) <= before


CAUSE = Cause(
    group="graph",
    cures=("whole-batch", "vectorize-loop", "function"),
    explains=("gpu-idle", "launch-bound", "step-overhead"),
    in_run=in_run,
    patterns=(_batch_taken_apart, _rows_one_by_one),
)
