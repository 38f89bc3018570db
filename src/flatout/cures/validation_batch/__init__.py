"""`fit` validates in larger batches than it trains with.

## What it does
Validation of arrays runs in batches of `validation_batch_size`, or as large as those of the training. This lever makes
them four times as large as those of the training: nothing is learned in validation, so nothing is kept for a backward
pass, and such a batch takes about as much memory as one of the training.

## When it pays
Where validation takes a good part of the run in small batches: each has the cost of a call. It is a cure of the run,
not of the step: it is measured by runs from start to end.

## What it changes
Sums of losses and metrics are rounded differently: Keras weighs each batch by its samples. Where a metric of the
program's own is computed over a batch as a whole, its mean over batches changes: the comparison of the whole training
shows that, and the cure is not claimed. Left alone: a model with a `test_step` of its own, a fixed batch or a state,
`validation_steps`, a distribution strategy, and validation data that has batches already (datasets, generators).

## In the source
```python
model.fit(x, y, batch_size=32, validation_data=(x_val, y_val), validation_batch_size=128)
```
"""

from __future__ import annotations

from flatout.cures import _trial_edit
from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case

TIMES = 4
"""The batch of the training."""


def skip(case: Case) -> str | None:
    if queries.step_kind(case) != "fit":
        return "no model is fitted"
    texts = [text for _, text in _trial_edit.sources(case)]
    if not any("validation_data" in text or "validation_split" in text for text in texts):
        return "fit does not validate"
    if any("def test_step" in text for text in texts):
        return "the program has a test_step of its own"
    return None


CURE = Cure(does="validate in larger batches", equivalence="reassociated", side="run", skip=skip, saves=("validation",))
