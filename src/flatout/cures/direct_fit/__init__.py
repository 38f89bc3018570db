"""`Model.fit` and `Model.evaluate` on one batch of arrays, or `fit` on a few, run the model's step alone.

## What it does
Serves `fit(x, y)` on arrays of at most one batch without building a data pipeline, callbacks and a progress bar for it:
the same graph on the same rows, once for each epoch. It still returns a `History`. With `shuffle=False` there may be a
few batches (16 at most): they are gone through in their order. A call with callbacks, validation data, class weights, a
dataset, or more rows than that, runs as before; so do models with layers that keep a state from batch to batch, and the
first call of each model. `callbacks=[board] if done else None` is looked at in each call.

## When it pays
When a program fits a few rows again and again, as an agent does after each move: what `fit` sets up costs 50 ms and
more, a step of a small model one or two.

## What it changes
Reassociated: `fit` shuffles the rows of its only batch, which changes the order in which they are summed up; dropout
and other noise fall on other rows. Progress bars are no longer printed.

## In the source
```python
model.train_on_batch(states, targets)            # for model.fit(states, targets, epochs=1, verbose=0)

if done:                                         # for model.fit(…, callbacks=[board] if done else None)
    model.fit(states, targets, callbacks=[board])
else:
    model.train_on_batch(states, targets)
```
"""

from __future__ import annotations

from flatout.cures._spec import Cure
from flatout.model.case import Case
from flatout.model.evidence.program import KerasCall


def skip(case: Case) -> str | None:
    methods = ("fit", "evaluate")
    seen = [item for item in case.evidence_of(KerasCall) if item.method in methods and item.calls > 1]
    if any(item.single or item.few for item in seen):
        return None
    if any(item.method == "fit" and item.batches > item.calls for item in seen):
        return "fit shuffles its batches: in another order they give other numbers (shuffle=False keeps it)"
    return "neither fit nor evaluate is called again and again on a single batch of arrays"


CURE = Cure(
    does="run fit on single batches as one graph",
    equivalence="reassociated",
    side="host",
    skip=skip,
    conflicts=("free-compute",),
    after=("no-run-eagerly",),
)
