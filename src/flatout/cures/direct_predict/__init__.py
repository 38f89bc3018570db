"""`Model.predict` on a few rows goes straight to the model's graph.

## What it does
Serves `predict(x)` on arrays or tensors of at most four batches without building a data pipeline, callbacks and a
progress bar for it. A call with callbacks, several `steps`, a dataset, a generator or more rows runs as before.

## When it pays
When a program calls `predict` again and again on a few rows: what `predict` sets up costs 50 ms and more, the model
itself a fraction of one.

## What it changes
Nothing for one batch: the same graph on the same rows, returned as NumPy arrays. Rows of several batches go through the
model together: reassociated, as the number of rows chooses the kernels. Progress bars are no longer printed.

## In the source
```python
forward = tf.function(model)
forecast = forward(window, training=False).numpy()        # or model.predict_on_batch(window)
```
The patch writes `predict_on_batch`. It also changes calls of the same model that the run has not come to, as those of a
policy that explores at first, where the source shows a single row: `np.reshape(state, [1, 4])`, `state[np.newaxis]`.
"""

from __future__ import annotations

from flatout.cures import _frozen
from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case
from flatout.model.evidence.program import KerasCall


def skip(case: Case) -> str | None:
    seen = [item for item in case.evidence_of(KerasCall) if item.method == "predict" and item.calls > 1]
    if not seen and queries.step_kind(case) != "predict":
        return "the steps are not those of Model.predict"
    if seen and not any(item.single or item.single is None for item in seen):
        return "predict is called with many rows, a dataset, callbacks or several steps each time"
    return None


def by_hand(case: Case, value: str) -> str:
    from flatout.cures.direct_predict.edit import by_hand

    return _frozen.told(by_hand, case)


CURE = Cure(
    does="call the model's graph instead of predict",
    equivalence="reassociated",
    side="host",
    skip=skip,
    saves=("prediction",),
    after=("no-run-eagerly",),
    by_hand=by_hand,
)
