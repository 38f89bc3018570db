"""Something that should be made once is made again in every step: an optimizer, a layer, a dataset.

## What it is
The constructor of an optimizer, of a layer with weights or of a dataset is inside the loop of the steps, or in the
method that Keras calls for every batch. In a TF1 program any op counts: each turn of the loop adds some to the graph.

## Why it costs
Making the object costs milliseconds where using it costs microseconds, and what it should have kept is lost: an
optimizer made anew has no moments, a layer made in `call` has new random weights each time and is not trained. In a
`tf.function` a second call that makes variables is an error. A session has to take over, place and optimise its graph
again after each addition, and the graph never gets smaller: the steps become slower and slower.

## How it looks
```python
for images, labels in dataset:
    optimizer = keras.optimizers.Adam(1e-3)           # its moments are zero again in each step
    train_step(images, labels, optimizer)
```

## The cure
```python
optimizer = keras.optimizers.Adam(1e-3)
for images, labels in dataset:
    train_step(images, labels, optimizer)
```
Layers are made in `__init__` or `build` and used in `call`. Ops of a TF1 graph are made before the loop;
`tf.get_default_graph().finalize()` turns an op made later into an error.
- `hoist-ops`: exact; ops of a TF1 graph that have nothing to do with the turns of the loop, as an edit of the source
  that is tried as such.
- Objects that learn, by hand: **semantic**. The object now keeps what it learns from step to step, and only the
  author knows where it belongs.

## When it is not worth it
A loop over models or folds makes each of them once, as it should.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.model.evidence.steps import GraphGrowth
from flatout.source.analysis import loops
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import last_name


def in_run(case: Case) -> Iterator[Finding]:
    """Ops added to the graph of a session, run after run."""
    for item in case.evidence_of(GraphGrowth):
        yield from queries.finding(
            "rebuilt-in-loop",
            case,
            f"The graph keeps growing, by {item.ops_each_time:.0f} ops each time: the session takes it "
            "over and optimises it again before it can run.",
            cost_ms=queries.part_ms(case, "python", "idle"),
            where=item.where,
            evidence=[item, queries.number("grown", item.added, "ops", "added in all", "hook")],
            fixes=[
                Fix("Make these ops once, before the loop; graph.finalize() then keeps others out.", lever="hoist-ops")
            ],
            estimate="all time of the step outside its ops",
        )


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

_OPTIMIZERS = [
    "Adam",
    "AdamW",
    "SGD",
    "RMSprop",
    "Adagrad",
    "Adadelta",
    "Adamax",
    "Nadam",
    "Ftrl",
    "Lion",
    "Adafactor",
    "AdamOptimizer",
]
_LAYERS = [
    "Dense",
    "Conv1D",
    "Conv2D",
    "Conv3D",
    "Conv2DTranspose",
    "SeparableConv2D",
    "DepthwiseConv2D",
    "LSTM",
    "GRU",
    "Embedding",
    "BatchNormalization",
    "LayerNormalization",
    "MultiHeadAttention",
    "EinsumDense",
]
_DATASETS = ("from_tensor_slices", "from_generator", "from_tensors")
_OPS = (
    *("assign", "assign_add", "assign_sub", "add_n", "argmax", "cast", "clip_by_value", "concat", "equal", "exp"),
    *("expand_dims", "gather", "global_variables_initializer", "gradients", "matmul", "one_hot", "reduce_max"),
    *("reduce_mean", "reduce_sum", "reshape", "resize_images", "sigmoid", "softmax", "square", "squeeze", "stack"),
    *("tile", "transpose", "decode_jpeg", "decode_png", "image_summary", "scalar"),
)
"""Functions of TensorFlow whose call makes an operation, those that occur in such loops."""


@pattern("optimizer", calls=_OPTIMIZERS)
def _optimizer(call: ast.Call, site: Site) -> Iterator[Match]:
    """An optimizer made in the loop of the steps, or in the step itself."""
    if not site.dotted(call.func).startswith(("keras.optimizers.", "tensorflow.optimizers.", "tensorflow.train.")):
        return
    loop = loops.eager_loop(site)
    if loop is not None and not loops.is_guarded(site, loop):
        if not loops.names_epochs(loop) and loops.is_step_loop(loop, site.scope):
            yield _match(call, "The optimizer is made anew in each step, and forgets its moments.")
    elif not site.arms and site.scope.is_function and loops.STEP_NAME.match(site.scope.name):
        updates = any(last_name(other.func) == "apply_gradients" for other, _ in site.scope.facts.calls)
        if updates and not any(
            isinstance(inner, ast.FunctionDef) for inner in ast.walk(site.scope.node) if inner is not site.scope.node
        ):
            yield _match(call, f"{site.scope.name} makes a new optimizer in each call, without moments.")


@pattern("layer-in-call", calls=_LAYERS, needs=("call",), in_call=_LAYERS)
def _layer_in_call(call: ast.Call, site: Site) -> Iterator[Match]:
    """A layer with weights made in `call`."""
    if site.scope.name != "call" or site.scope.owner is None or site.arms:
        return
    if any(last_name(other.func) == "Input" for other, _ in site.scope.facts.calls):
        return  # builds a model, under a name that Keras uses otherwise
    others = [other for other, where in site.scope.facts.calls if last_name(other.func) in _LAYERS and not where.arms]
    if min(others, key=lambda other: (other.lineno, other.col_offset)) is not call:
        return  # reported once per method
    if site.dotted(call.func).startswith("keras.layers.") and "inputs" not in {item.arg for item in call.keywords}:
        yield _match(call, f"A new {last_name(call.func)} is made in every call, with weights that are never trained.")


@pattern("dataset", calls=_DATASETS, of_tensorflow=True)
def _dataset(call: ast.Call, site: Site) -> Iterator[Match]:
    """A dataset made in the loop of the steps."""
    if not site.dotted(call.func).startswith("tensorflow.data.Dataset."):
        return
    loop = loops.eager_loop(site)
    if loop is None or loops.is_guarded(site, loop) or loops.names_epochs(loop):
        return
    if any(isinstance(item, ast.Try) for item, _ in site.arms):
        return  # where the last one has come to its end
    if loops.is_step_loop(loop, site.scope):
        yield _match(call, "A dataset is made anew in each step.")


@pattern("op-beside-run", calls=_OPS, among=("Session", "InteractiveSession", "sess", "session"), needs=("run",))
def _op_beside_run(call: ast.Call, site: Site) -> Iterator[Match]:
    """`sess.run(tf.argmax(logits, 1))` in a loop: each turn adds the operation to the graph."""
    loop = loops.innermost(site)
    if loop is None or not _adds_op(call, site) or loops.is_short(loop, 16, site):
        return
    turn = loops.calls_in(loop, site.scope)
    if any(
        last_name(other.func) in ("Session", "InteractiveSession", "Graph", "reset_default_graph") for other, _ in turn
    ):
        return  # a graph of its own in each turn
    if not any(last_name(other.func) == "run" and _is_session(other.func) for other, _ in turn):
        return
    # Reported once for a loop, at its first operation.
    added = [other for other, where in turn if last_name(other.func) in _OPS and _adds_op(other, where)]
    if min(added, key=lambda other: (other.lineno, other.col_offset)) is call:
        yield Match(
            call,
            "Operations are added to the graph in each turn of the loop: it grows, and each run of the session takes "
            "longer than the last.",
            "Make them once, before the loop; tf.get_default_graph().finalize() then keeps others out.",
            report_at=call.func,
        )


def _adds_op(call: ast.Call, site: Site) -> bool:
    """An operation of TensorFlow, made in each turn of the loop around it."""
    return (
        bool(site.loops)
        and site.dotted(call.func).startswith("tensorflow.")
        and not loops.is_guarded(site, site.loops[-1])
    )


def _is_session(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and "sess" in last_name(node.value).lower()


def _match(call: ast.Call, message: str) -> Match:
    return Match(call, message, "Make it once, before the loop, or in __init__.", "semantic", report_at=call.func)


CAUSE = Cause(
    group="graph",
    cures=("hoist-ops",),
    explains=("feed-dict", "gpu-idle", "launch-bound", "step-overhead"),
    in_run=in_run,
    patterns=(_optimizer, _layer_in_call, _dataset, _op_beside_run),
)
