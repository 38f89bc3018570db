"""The batch size is multiplied by a factor.

## What it does
Multiplies the batch size of `fit` on arrays, and of every `Dataset.batch` in the program, by its setting:
`batch-size=2`.

## When it pays
When a step is too small for the machine: the cost of starting it is shared by more samples, and larger operations use
a GPU or wide vectors better. A step takes longer and does more, so whole runs try it: it is claimed where a run that
sees as many samples takes less time.

## What it changes
**Semantic**: a larger batch is another training recipe. Fewer updates are made per epoch, and the learning rate
usually has to follow. Tried only when it is named.

## In the source
```python
model.fit(features, targets, batch_size=64)
```
"""

from __future__ import annotations

from collections.abc import Sequence

from flatout.cures._spec import Cure
from flatout.model.case import Case


def skip(case: Case) -> str | None:
    return "the program has no steps" if case.steps is None else None


def values(case: Case) -> Sequence[str]:
    return ("2", "4")


CURE = Cure(
    does="make batches {value} times as large",
    equivalence="semantic",
    side="compute",
    samples=lambda value: max(int(value), 1),
    saves=("steps",),
    conflicts=("accumulate",),
    values=values,
    skip=skip,
    by_default=False,
)
