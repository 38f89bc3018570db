"""`Model.predict` on one small batch goes straight to the model's graph.

## What it does
Serves `predict(x)` on arrays or tensors of at most one batch without building a data pipeline, callbacks and a
progress bar for it. A call with callbacks, `steps`, a dataset, a generator or visible progress runs as before.

## When it pays
When a program calls `predict` again and again on a few rows: what `predict` sets up costs 50 ms and more, the model
itself a fraction of one.

## What it changes
Nothing: exact. The same graph on the same batch, returned as NumPy arrays.

## In the source
```python
forward = tf.function(model)
forecast = forward(window, training=False).numpy()        # or model.predict_on_batch(window)
```
"""

from __future__ import annotations

from flatout.cures._spec import Cure
from flatout.model.case import Case


def skip(case: Case) -> str | None:
    if any(finding.cause == "predict-in-loop" for finding in case.findings):
        return None
    from flatout.model import queries

    if queries.step_kind(case) != "predict":
        return "the steps are not those of Model.predict"
    return None


CURE = Cure(equivalence="exact", side="host", skip=skip)
