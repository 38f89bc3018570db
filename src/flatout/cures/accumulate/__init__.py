"""Each batch is split into smaller ones, whose gradients are summed before the weights change.

## What it does
Divides the batch size of a Keras `fit` by its setting (`accumulate=4`) and sets the optimizer's
`gradient_accumulation_steps`, so that each update still uses as many samples as before.

## When it pays
When a batch does not fit into memory: only the activations of one part are held at a time. It is rarely faster. A step
then takes a part of the samples, so whole runs try it: it is claimed where a run that sees as many samples takes less
time.

## What it changes
**Semantic**, though little: the mean of the parts' gradients is that of the batch, summed in another order. But batch
normalisation sees the smaller parts, and Keras advances a learning-rate schedule with each part, so that it runs
ahead. Tried only when it is named.

## In the source
```python
model.compile(optimizer=keras.optimizers.Adam(gradient_accumulation_steps=4), loss="mse")
model.fit(features, targets, batch_size=64)        # instead of 256
```
"""

from __future__ import annotations

from collections.abc import Sequence

from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case


def skip(case: Case) -> str | None:
    return None if queries.step_kind(case) == "fit" else "the steps are not those of a Keras fit"


def values(case: Case) -> Sequence[str]:
    return ("2", "4")


CURE = Cure(
    does="split each batch in {value} and add up the gradients",
    equivalence="semantic",
    side="compute",
    samples=lambda value: 1 / max(int(value), 2),
    saves=("steps",),
    conflicts=("batch-size",),
    values=values,
    skip=skip,
    by_default=False,
)
