"""Epochs of `Model.fit` that are one batch each run the model's step alone.

## What it does
Serves the second and all later epochs of `fit(x, y, epochs=…)` on arrays of at most one batch without what Keras does
around each epoch: an iterator, callbacks and a progress bar. The first epoch is Keras' own, which builds the model and
its training function; the others call that function on the same rows. It returns the same `History`. A call with
callbacks, validation data, class weights, a dataset, or more rows than a batch, runs as before; so do models
whose layers keep a state from batch to batch.

## When it pays
When a few rows are fitted for many epochs, as in a first example of a network: an epoch of one batch costs 10 ms and
more around a step of one or two. `direct-fit` is the same for many calls of a few epochs.

## What it changes
Reassociated: `fit` shuffles the rows of its only batch, which changes the order in which they are summed up; dropout
and other noise fall on other rows. Progress bars are no longer printed.

## In the source
```python
model.train_on_batch(x, y)                       # makes model.train_function

@tf.function(autograph=False)
def step(x, y):
    model.reset_metrics()
    return model.train_function(iter([(x, y)]))

for epoch in range(1, epochs):                   # for model.fit(x, y, epochs=epochs)
    logs = step(x, y)
```
"""

from __future__ import annotations

from flatout.cures._spec import Cure
from flatout.model.case import Case
from flatout.model.evidence.program import MANY_EPOCHS, KerasCall


def fits(case: Case) -> list[KerasCall]:
    """Calls of `fit` that had nothing but one batch of arrays, for many epochs."""
    return [item for item in case.evidence_of(KerasCall) if item.is_one_batch_again]


def skip(case: Case) -> str | None:
    return None if fits(case) else f"no fit has {MANY_EPOCHS} epochs and more of a single batch of arrays"


CURE = Cure(
    does="run the epochs of fit on one batch as one graph each",
    equivalence="reassociated",
    side="host",
    skip=skip,
    conflicts=("free-compute", "direct-fit", "steps-per-execution"),
    after=("no-run-eagerly",),
)
