"""`fit` goes over its dataset with one iterator for all epochs.

## What it does
`fit` makes a new iterator for every epoch: the old one is taken down, which waits for its threads, stages are made
anew, and the first batch is computed while nothing else happens. This lever gives `fit` `dataset.repeat()` and
`steps_per_epoch=len(dataset)`: one iterator is used to the end, and while validation and callbacks run it prepares
what comes next.

## When it pays
With short epochs, and where validation or callbacks take a while after each of them. It is a cure of the run, not of
the step: it is measured by runs from start to end. A shuffle buffer is still filled at every epoch, only earlier.

## What it changes
Semantic, so it is tried with `--allow semantic` or `--lever one-iterator` only: a shuffle gives another random order
from the second epoch on, as good as the one before. Without a shuffle the batches are the same, in the same order.
For datasets of known length whose stages keep no state: where a map reads a variable that changes from epoch to
epoch, the first batches of an epoch would be made too early.

## In the source
```python
model.fit(train.repeat(), steps_per_epoch=len(train), epochs=50)
```
"""

from __future__ import annotations

from flatout.cures import _pipelines
from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case


def skip(case: Case) -> str | None:
    if queries.step_kind(case) != "fit":
        return "no model is fitted"
    stages = [stage for _, _, stage in _pipelines.stages(case)]
    if not stages:
        return "no model is fitted to a tf.data dataset"
    kept = next((stage for stage in stages if stage.stateful is not None), None)
    return f"its stage {kept.name} keeps a state that may change from epoch to epoch" if kept is not None else None


CURE = Cure(
    does="use one iterator for all epochs",
    equivalence="semantic",
    side="run",
    skip=skip,
    saves=("epoch-start",),
)
