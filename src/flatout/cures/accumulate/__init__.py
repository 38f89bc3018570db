"""A batch is taken in several smaller ones, whose gradients are summed before the weights change.

## What it does
Divides the batches of a Keras `fit` by its setting (`accumulate=4`) and gives the optimizer
`gradient_accumulation_steps`, so that as many samples as before make one update.

## When it pays
When a batch does not fit into memory. It saves the activations of all but one part; it is rarely faster.

## What it changes
**Semantic**, if little: the mean of the parts' gradients is that of the batch, summed in another order, but
batch normalisation sees the smaller parts, and Keras moves a schedule of the learning rate on with each part, so
that it runs ahead. Tried only when it is asked for.

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
    equivalence="semantic", side="compute", conflicts=("batch-size",), values=values, skip=skip, by_default=False
)
