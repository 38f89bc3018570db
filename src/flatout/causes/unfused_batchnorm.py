"""Batch normalization runs as a chain of small operations instead of one fused kernel.

## What it is
Mean, variance, difference, square root, scale and shift as operations of their own. Keras 3 on TensorFlow
composes `BatchNormalization` this way; `tf_keras` uses the kernel `FusedBatchNormV3` for four-dimensional
inputs. Code written by hand with `tf.nn.moments` and `tf.nn.batch_normalization` is composed as well.

## Why it costs
Each operation of the chain reads and writes the whole activation, and the gradient does so again. The
arithmetic is small; the memory traffic is several times that of the fused kernel. In a convolutional
network with a normalization after each convolution that adds up.

## How it looks
```python
mean, variance = tf.nn.moments(images, axes=(0, 1, 2))
images = tf.nn.batch_normalization(images, mean, variance, offset, scale, 1e-3)
images = tf.nn.relu(images)
```

## The cure
Let a compiler fuse the chain, or call the fused kernel:
```python
fused = tf.compat.v1.nn.fused_batch_norm
images, mean, variance = fused(images, scale, offset, epsilon=1e-3, is_training=True)
images = tf.nn.relu(images)
```
On a GPU, Keras 3 compiles with XLA by default where all layers allow it, and XLA fuses the chain. For
inference, the normalization can be folded into the weights of the convolution before it (`flatout
optimize`).
- `xla`: reassociated. On CPUs it can be much slower: measure.
- The fused kernel: reassociated. It uses the unbiased variance for the running average, a small difference.

## When it is not worth it
When normalization is a small part of the step, for inputs that are not four-dimensional, or at small batch
sizes, where the dispatch dominates (`step-overhead`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix, Op, Where
from flatout.model.evidence.graphs import NormByHand
from flatout.source.analysis import datasets
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import argument, constant, keyword, last_name
from flatout.source.repairs import DropArgument, Repair


def in_run(case: Case) -> Iterator[Finding]:
    for item in case.evidence_of(NormByHand):
        if item.where is None:
            continue
        scopes = [f"{scope}/" for scope in item.scopes if scope]
        lines = range(item.first, item.last + 1)
        mine = [op for op in case.ops if _belongs(op, item.where, lines, scopes)]
        whole = sum(op.self_ms for op in case.ops) or 1.0
        spent = queries.part_ms(case, "compute") * sum(op.self_ms for op in mine) / whole
        yield from queries.finding(
            "unfused-batchnorm",
            case,
            f"Batch normalisation is spelled out {item.times} times as separate ops, each going over memory.",
            cost_ms=0.6 * spent,
            where=item.where,
            evidence=[
                queries.number("norm", spent, "ms", "of a step goes into these ops and their gradients", "trace")
            ],
            fixes=[Fix("Use tf.compat.v1.nn.fused_batch_norm, which is one op.", equivalence="reassociated")],
            confidence="low",
            estimate="an estimate: 60 % of the time of its ops",
        )


def _belongs(op: Op, where: Where, lines: range, scopes: list[str]) -> bool:
    """On one of its lines, or, for the gradients, in the name scope of its layer."""
    if op.where is not None and op.where.file == where.file and op.where.line in lines:
        return True
    return any(scope in op.name for scope in scopes)


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────


@pattern(
    "fused-off",
    calls=("BatchNormalization", "batch_normalization", "batch_norm"),
    words=("fused",),
    written=r"\bfused[\s\\]*=[\s\\(]*False",
)
def _fused_off(call: ast.Call, site: Site) -> Iterator[Match]:
    """`BatchNormalization(fused=False)`"""
    if constant(keyword(call, "fused")) is False and site.dotted(call.func).startswith(("tensorflow.", "keras.")):
        yield Match(
            call,
            "fused=False spells batch normalisation out as a chain of small operations.",
            "Leave it out: the fused kernel is used where the input allows it.",
            "reassociated",
            repair=Repair(DropArgument("fused"), assumes="results may differ by rounding"),
            report_at=keyword(call, "fused"),
        )


_CHANNELS = r"[\[(]\s*0\s*,\s*1\s*,\s*2\s*,?\s*[\])]"
"""`[0, 1, 2]`: all axes but the last."""


@pattern("by-means", calls=("reduce_mean",), needs=("square",), written=_CHANNELS, of_tensorflow=True)
def _by_means(call: ast.Call, site: Site) -> Iterator[Match]:
    """`tf.reduce_mean(tf.square(images - mean), axis=[0, 1, 2])`: the variance of each channel."""
    if site.dotted(call.func) not in ("tensorflow.reduce_mean", "tensorflow.math.reduce_mean") or not call.args:
        return
    axes, squared = argument(call, 1, "axis"), call.args[0]
    if not isinstance(axes, (ast.List, ast.Tuple)) or [constant(item) for item in axes.elts] != [0, 1, 2]:
        return
    if not isinstance(squared, ast.Call) or not squared.args:
        return
    inner = squared.args[0]
    difference = isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub)
    if difference and site.dotted(squared.func) in ("tensorflow.square", "tensorflow.math.square"):
        yield _by_operations(call)


@pattern("by-hand", calls=("batch_normalization",), words=("moments",), written=_CHANNELS, of_tensorflow=True)
def _by_hand(call: ast.Call, site: Site) -> Iterator[Match]:
    """`tf.nn.moments(images, [0, 1, 2])` and `tf.nn.batch_normalization` in one function."""
    if site.dotted(call.func) != "tensorflow.nn.batch_normalization" or _is_conditional(call, site):
        return
    for other, _ in site.scope.facts.calls:
        axes = argument(other, 1, "axes") if last_name(other.func) == "moments" else None
        if isinstance(axes, (ast.List, ast.Tuple)) and [constant(item) for item in axes.elts] == [0, 1, 2]:
            yield _by_operations(call)
            return


def _is_conditional(call: ast.Call, site: Site) -> bool:
    """Whether scale or offset are computed, one for each image: the fused operation takes one for all."""
    for given in (argument(call, 3, "offset"), argument(call, 4, "scale")):
        bound = datasets.value_of(given.id, site) if isinstance(given, ast.Name) else None
        made = bound[0] if bound is not None else given
        if isinstance(made, ast.Call) and last_name(made.func) in (
            "reshape",
            "expand_dims",
            "gather",
            "embedding_lookup",
        ):
            return True
    return False


def _by_operations(call: ast.Call) -> Match:
    return Match(
        call,
        "Batch normalisation of images is spelled out by hand, in operations that each go over memory.",
        "Use tf.compat.v1.nn.fused_batch_norm, or keras.layers.BatchNormalization.",
        "reassociated",
        report_at=call.func,
    )


CAUSE = Cause(
    group="numerics",
    cures=("xla",),
    in_run=in_run,
    patterns=(_fused_off, _by_means, _by_hand),
)
