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

from collections import defaultdict
from collections.abc import Iterator

from flatout.case import Case, Finding, Fix, Where
from flatout.causes import reading

GROUP = "numerics"
LEVERS = ("xla",)

MARKS = ("SquaredDifference", "Rsqrt", "Mean")


def in_run(case: Case) -> Iterator[Finding]:
    """Moments and a normalisation written by hand: Mean, SquaredDifference and Rsqrt in the same function."""
    groups: dict[tuple[str | None, str | None], list[int]] = defaultdict(list)
    for number, op in enumerate(case.ops):
        if op.where is None or "layer_normalization" in op.name:
            continue
        if "moments" in op.name or "batchnorm" in op.name.lower() or op.type in MARKS:
            groups[(op.where.file, op.where.function)].append(number)
    for (file, function), members in groups.items():
        names = {case.ops[i].type for i in members}
        by_hand = any("moments" in case.ops[i].name for i in members) or set(MARKS) <= names
        in_layer = (
            case.steps is not None and case.steps.where is not None and case.ops[members[0]].where == case.steps.where
        )
        if not by_hand or in_layer:
            continue
        lines: dict[Where, float] = defaultdict(float)
        for op in case.ops:
            if op.where is not None and (op.where.file, op.where.function) == (file, function):
                lines[op.where] += op.self_ms
        inside = [case.ops[i] for i in members]
        near = {op.where.line for op in inside if op.where is not None}
        total = sum(ms for where, ms in lines.items() if where.line in near)
        whole = sum(op.self_ms for op in case.ops) or 1.0
        cost = reading.part_ms(case, "compute") * total / whole
        first = min((op.where for op in inside if op.where is not None), key=lambda where: where.line or 0)
        yield from reading.finding(
            "unfused-batchnorm",
            case,
            f"Batch normalisation is written as {sum(op.count for op in inside):.0f} separate ops a step.",
            cost_ms=0.6 * cost,
            where=first,
            evidence=[reading.number("moments", cost, "ms", "of a step goes into these lines", "trace")],
            fixes=[Fix("Use tf.compat.v1.nn.fused_batch_norm, which is one op.", equivalence="reassociated")],
            confidence="low",
            estimate="an estimate: 60 % of the time of its ops",
        )
