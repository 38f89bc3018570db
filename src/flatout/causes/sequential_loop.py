"""A loop in the graph does one after another what a single operation could do at once.

## What it is
`for i in tf.range(n)`, `tf.while_loop`, `tf.map_fn` or `tf.scan` over rows, where no round needs the result
of the one before. It is **not** a retrace per round: the loop is traced once, as one loop operation.

## Why it costs
Every round pays for the dispatch of its small operations and for reading and writing a `TensorArray`, and
the kernels see one row at a time. On one machine a loop took 1618 µs and its vectorised form 284 µs. On an
accelerator each round also launches its own small kernels.

## How it looks
```python
@tf.function
def normalise(rows):
    result = tf.TensorArray(tf.float32, size=tf.shape(rows)[0])
    for i in tf.range(tf.shape(rows)[0]):
        result = result.write(i, rows[i] / tf.norm(rows[i]))
    return result.stack()
```

## The cure
```python
@tf.function
def normalise(rows):
    return rows / tf.norm(rows, axis=1, keepdims=True)
```
`tf.vectorized_map` does this for many functions of one row; `tf.map_fn(..., parallel_iterations=...)` is
still a loop.
- An edit of the source: reassociated. The sum inside a reduction may be taken in another order.
- `xla` can make the body of a true recurrence cheaper: reassociated, and slower for some programs.

## When it is not worth it
When a round needs the result of the last one (recurrent networks, sampling, simulation), or when all rows
at once would not fit in memory. A loop of few rounds with large bodies costs nothing worth mentioning.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._sample_loops import traced_loops
from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.model.evidence.graphs import GraphLoop
from flatout.source import context
from flatout.source.analysis import loops
from flatout.source.analysis.call_summary import summarize, summarize_scope
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.recurrences import is_recurrence
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import argument, last_name, loaded_names, nested_calls, stored_names
from flatout.source.analysis.traced_functions import is_traced

TRIPS = 8
RECURRENT = ("lstm", "gru", "rnn")


def in_run(case: Case) -> Iterator[Finding]:
    if any(traced_loops(case)):
        return
    for item in case.evidence_of(GraphLoop):
        trips = item.trips
        if trips < TRIPS or item.where is None or item.where.file is None or item.where.line is None:
            continue
        if any(mark in item.graph.lower() for mark in RECURRENT):
            continue  # a recurrent layer must go step by step
        if is_recurrence(item.where.file, item.where.line) or _is_scan(item.where.code):
            continue  # so must a loop that carries a state
        loop = context.innermost_loop(item.where.file, item.where.line)
        line = loop.line if loop is not None else item.where.line
        inside = item.ms_per_step
        cost = (inside + queries.part_ms(case, "idle") * item.share_of_ops) * (1 - 1 / trips)
        yield from queries.finding(
            "sequential-loop",
            case,
            f"A loop in the graph runs {trips:.0f} times a step, one small op after another.",
            cost_ms=cost,
            where=context.where(item.where.file, line, item.where.function),
            evidence=[item, queries.number("body", inside, "ms", "per step in the loop's ops", "trace")],
            fixes=[
                Fix(
                    "Where a turn does not need the one before, compute all of them as one tensor.",
                    equivalence="reassociated",
                )
            ],
            confidence="low",
            estimate="an estimate: what vectorising would save at most",
        )
        return


def _is_scan(code: str | None) -> bool:
    """`tf.scan` and `tf.while_loop` hand a state from turn to turn, and so does a recurrent layer."""
    return code is not None and any(word in code for word in ("scan(", "while_loop(", "RNN(", "rnn("))


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

_PLAIN = (
    "tensorflow.cast",
    "tensorflow.math.",
    "tensorflow.reduce_",
    "tensorflow.nn.softmax",
    "tensorflow.nn.relu",
    "tensorflow.nn.sigmoid",
    "tensorflow.nn.l2_normalize",
    "tensorflow.square",
    "tensorflow.sqrt",
    "tensorflow.exp",
    "tensorflow.abs",
    "tensorflow.norm",
    "tensorflow.matmul",
    "tensorflow.linalg.matmul",
    "tensorflow.linalg.matvec",
    "tensorflow.linalg.norm",
    "tensorflow.nn.log_softmax",
    "tensorflow.nn.softplus",
    "tensorflow.nn.tanh",
    "tensorflow.nn.gelu",
    "tensorflow.pow",
    "tensorflow.multiply",
    "tensorflow.add",
    "tensorflow.subtract",
    "tensorflow.divide",
    "tensorflow.tanh",
    "tensorflow.sigmoid",
    "tensorflow.maximum",
    "tensorflow.minimum",
    "tensorflow.clip_by_value",
    "tensorflow.constant",
    "tensorflow.expand_dims",
    "tensorflow.tensordot",
)
"""Operations without state that all have a form over one more axis."""
_PLAIN_IMAGES = (
    *_PLAIN,
    "tensorflow.image.resize",
    "tensorflow.image.per_image_standardization",
    "tensorflow.image.convert_image_dtype",
    "tensorflow.image.rgb_to_grayscale",
    "tensorflow.image.flip_left_right",
)


_ALSO = (
    *("tensorflow.reshape", "tensorflow.concat", "tensorflow.stack", "tensorflow.transpose", "tensorflow.squeeze"),
    *("tensorflow.tile", "tensorflow.pad", "tensorflow.one_hot", "tensorflow.gather", "tensorflow.where"),
    *("tensorflow.zeros_like", "tensorflow.ones_like", "tensorflow.equal", "tensorflow.greater", "tensorflow.less"),
    *("tensorflow.sign", "tensorflow.logical_", "tensorflow.shape", "tensorflow.argmax", "tensorflow.argmin"),
    *("tensorflow.linalg.", "tensorflow.signal.", "tensorflow.nn.", "tensorflow.cumsum", "tensorflow.einsum"),
    *("tensorflow.split", "tensorflow.unstack"),
    *("tensorflow.sort", "tensorflow.argsort", "tensorflow.reverse", "tensorflow.roll", "tensorflow.slice"),
    *("tensorflow.sin", "tensorflow.cos", "tensorflow.round", "tensorflow.floor", "tensorflow.complex"),
    *("tensorflow.float", "tensorflow.image.crop_and_resize", "tensorflow.gather_nd", "tensorflow.range"),
    *("tensorflow.minimum", "tensorflow.maximum", "tensorflow.image.flip", "tensorflow.image.adjust"),
)
"""Operations that can be written for all rows, often with another axis."""
_ONE_ROW = (
    *("tensorflow.math.bincount", "tensorflow.math.segment", "tensorflow.math.unsorted_segment"),
    *("tensorflow.math.confusion_matrix", "tensorflow.math.invert_permutation", "tensorflow.nn.embedding"),
    *("tensorflow.nn.ctc", "tensorflow.image.non_max", "tensorflow.linalg.LinearOperator"),
)
"""Operations of one row, whose results have no common shape."""


@pattern(
    "turns-do-not-depend",
    nodes=(ast.For,),
    words=("range",),
    called=("range",),
    among=("function", "call", "train_step"),
    written=r"\bin[\s\\(]+\w[\w.\s\\]{0,80}\.\s{0,40}range\b|"
    r"\bimport\b[^\n]{0,200}\brange\b|\bimport[ \t]*\([^)]{0,2000}\brange\b",
    of_tensorflow=True,
)
def _turns_do_not_depend(loop: ast.For, site: Site) -> Iterator[Match]:
    """`for i in tf.range(n)` whose turns only write to a TensorArray, or add up something."""
    source = loop.iter
    if not isinstance(source, ast.Call) or site.dotted(source.func) != "tensorflow.range" or not is_traced(site):
        return
    if not isinstance(loop.target, ast.Name) or loop.orelse or not _independent(loop, site):
        return
    count = loops.number(source.args[-1 if len(source.args) == 1 else 1], site) if source.args else None
    yield Match(
        loop,
        "No turn of this loop needs the one before, but the graph runs them one after the other.",
        "Compute all turns as one tensor (or with tf.vectorized_map), and reduce it.",
        "reassociated",
        report_at=loop.iter,
        confidence="low" if count is not None and count <= 16 else "high",
    )


@pattern("map-fn", calls=("map_fn",), of_tensorflow=True, seldom=True)
def _map_fn(call: ast.Call, site: Site) -> Iterator[Match]:
    """`tf.map_fn` of operations that all take a batch."""
    if site.dotted(call.func) != "tensorflow.map_fn":
        return
    done = summarize(argument(call, 0, "fn"), site)
    if not done.known or "Ragged" in ast.unparse(call) or (not done.calls and not _picks(call)):
        return
    if all(_takes_batches(name, inner, where) for name, inner, where in done.calls):
        yield Match(
            call,
            "tf.map_fn goes through the rows one by one, though every operation in it takes all of them at once.",
            "Call the operations on the whole tensor, or use tf.vectorized_map.",
            "reassociated",
            report_at=call.func,
            confidence="high" if all(name.startswith(_PLAIN_IMAGES) for name, _, _ in done.calls) else "medium",
        )


def _picks(call: ast.Call) -> bool:
    """`lambda pair: pair[0][pair[1]]`: an element of each row, which is a gather with batch_dims."""
    given = argument(call, 0, "fn")
    return isinstance(given, ast.Lambda) and any(isinstance(node, ast.Subscript) for node in ast.walk(given.body))


def _takes_batches(name: str, call: ast.Call, site: Site) -> bool:
    if name.startswith(_ONE_ROW):
        return False
    if name in ("tensorflow.where", "tensorflow.compat.v1.where") and len(call.args) + len(call.keywords) == 1:
        return False  # the number of results differs from row to row
    if name.startswith("tensorflow.python.ops."):
        name = f"tensorflow.{name.rpartition('.')[2]}"
    own = site.module.function_of(call.func, site) is not None
    plain = not name and last_name(call.func) in ("len", "range", "zip", "float", "int", "tuple", "list", "dict")
    return own or plain or name.startswith((*_PLAIN_IMAGES, *_ALSO))


def _independent(loop: ast.For, site: Site) -> bool:
    """Every statement is a temporary, `array = array.write(i, …)` or `total += …`, of operations without state."""
    temporaries: set[str] = set()
    carried: set[str] = set()
    for statement in loop.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
        elif isinstance(statement, ast.AugAssign) and isinstance(statement.op, (ast.Add, ast.Mult)):
            target, value = statement.target, statement.value
        else:
            return False
        if not isinstance(target, ast.Name):
            return False
        read = loaded_names(value)
        if isinstance(statement, ast.AugAssign):
            carried.add(target.id)
        elif _writes(value, target.id):
            assert isinstance(value, ast.Call)
            carried.add(target.id)
            read = set().union(*(loaded_names(item) for item in value.args))
        elif _adds(value, target.id):
            carried.add(target.id)
            read = loaded_names(value.right) if isinstance(value, ast.BinOp) else set()
        else:
            if target.id in read:
                return False
            temporaries.add(target.id)
        if read & carried or not _known(value, target.id, site):
            return False
    later = {name for statement in loop.body for name in loaded_names(statement)} & temporaries
    return bool(carried) and later <= temporaries and not _read_early(loop, temporaries)


def _writes(value: ast.expr, name: str) -> bool:
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "write"
        and isinstance(value.func.value, ast.Name)
        and value.func.value.id == name
    )


def _adds(value: ast.expr, name: str) -> bool:
    return (
        isinstance(value, ast.BinOp)
        and isinstance(value.op, (ast.Add, ast.Mult))
        and isinstance(value.left, ast.Name)
        and value.left.id == name
    )


def _known(value: ast.expr, name: str, site: Site) -> bool:
    for call in nested_calls(value):
        if last_name(call.func) == "write" and _writes(call, name):
            continue
        if not site.dotted(call.func).startswith(_PLAIN) and not _plain_function(call, site):
            return False
    return True


def _plain_function(call: ast.Call, site: Site) -> bool:
    """A function of this file that is made of such operations alone."""
    found = site.module.function_of(call.func, site)
    if found is None or found.facts.attributes or found.facts.loops:
        return False
    done = summarize_scope(found)
    return bool(done.calls) and all(name.startswith(_PLAIN) for name, _, _ in done.calls)


def _read_early(loop: ast.For, temporaries: set[str]) -> bool:
    """Whether a temporary is read before it is set: it then carries the value of the last turn."""
    known: set[str] = set()
    for statement in loop.body:
        value = statement.value  # type: ignore[attr-defined]
        if loaded_names(value) & temporaries - known:
            return True
        known |= stored_names(statement)
    return False


CAUSE = Cause(
    group="graph",
    cures=("xla",),
    explains=("gpu-idle", "launch-bound", "step-overhead"),
    in_run=in_run,
    patterns=(_turns_do_not_depend, _map_fn),
)
