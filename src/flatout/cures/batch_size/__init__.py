"""Batches are larger by a factor.

## What it does
Multiplies the batch size of `fit` on arrays, and of every `Dataset.batch` in the program, by its setting:
`batch-size=2`.

## When it pays
When a step is too small for the machine: the cost of starting it is shared by more samples, and larger
operations use a GPU or wide vectors better. A step takes longer; samples per second are what to look at.

## What it changes
**Semantic**: a larger batch is another training recipe. Fewer updates are made per epoch, and the learning rate
usually has to follow. Tried only when it is asked for.

## In the source
```python
model.fit(features, targets, batch_size=64)
```
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

from flatout.model.case import Case, Equivalence
from flatout.observe.injection import Injection

EQUIVALENCE: Equivalence = "semantic"
SIDE = "compute"
CONFLICTS = ("accumulate",)
UNASKED = False


def skip(case: Case) -> str | None:
    return "the program has no steps" if case.steps is None else None


def values(case: Case) -> Sequence[str]:
    return ("2", "4")


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    from flatout.cures import _batches

    _batches.resize_datasets(injection, lambda size: size * _factor(injection))


def on_keras(injection: Injection, module: ModuleType) -> None:
    from flatout.cures import _batches

    _batches.resize_arrays(injection, "fit", lambda size: size * _factor(injection))


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    from flatout.cures import _batches

    _batches.resize_arrays(injection, "legacy-fit", lambda size: size * _factor(injection))


def _factor(injection: Injection) -> int:
    return max(int(injection.value or 2), 1)
