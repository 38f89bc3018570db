"""`fit` validates every few epochs, not after each one.

## What it does
Gives `fit` a `validation_freq`: 5, or what the setting says (`validation-freq=10`). In a `fit` of fewer epochs the last
one is validated.

## When it pays
Where validation takes a good part of the run, and its numbers are wanted now and then only. Larger batches of
validation (`validation-batch`) come first: they give the same numbers. It is a cure of the run, not of the step: it is
measured by runs from start to end.

## What it changes
Semantic: the training is the same, but there are fewer results of validation. That is the user's to decide, so it is
tried when it is named only (`--lever validation-freq`), and never part of a claim otherwise. Left alone: a `fit` with a
callback that looks at these results after each epoch (early stopping, a learning rate that follows them, the best
checkpoint), and one that has a `validation_freq`. In the source, a program that names a number of validation
(`"val_loss"`) stays as it is as well: a plot expects one for each epoch.

## In the source
```python
model.fit(x, y, epochs=50, validation_data=(x_val, y_val), validation_freq=5)
```
"""

from __future__ import annotations

from collections.abc import Sequence

from flatout.cures import _trial_edit
from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case

EVERY = 5
LOOKS = ("EarlyStopping", "ReduceLROnPlateau", "save_best_only=True", "monitor=", "'val_", '"val_')
"""Where one of these stands in a file, something may look at the results of each validation."""


def skip(case: Case) -> str | None:
    if queries.step_kind(case) != "fit":
        return "no model is fitted"
    if not any("validation_data" in text or "validation_split" in text for _, text in _trial_edit.sources(case)):
        return "fit does not validate"
    return None


def values(case: Case) -> Sequence[str]:
    return (str(EVERY),)


def every(value: str) -> int:
    """Epochs from one validation to the next."""
    return max(int(value), 1) if value.isdigit() else EVERY


CURE = Cure(
    does="validate every few epochs only",
    equivalence="semantic",
    side="run",
    values=values,
    skip=skip,
    saves=("validation",),
    fewer_results=True,
)
