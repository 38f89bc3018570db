"""`Model.train_on_batch` and `Model.test_on_batch` run as one graph.

## What it does
Before each batch, `train_on_batch` sets the metrics back, variable by variable from Python, and then calls the graph of
its step. With this cure one graph does both: Keras' own graph of the step inside another that sets the metrics back
first. A call returns the same numbers in the same form. The first call of each model runs as before, and so do calls
with class weights or with data that are not arrays, models that run eagerly, and metrics with a `reset_state` of the
program's own. As an edit, the call goes to a small function `train_batch(model, x, y)`; where nothing uses what it
returns, that is not fetched either.

## When it pays
When batches are small and models too: on one machine `train_on_batch` of a network of three small layers took 2.2 ms,
and 1.2 ms in one graph; each compiled metric adds half a millisecond to the former. `predict_on_batch` sets nothing
back: it is one call of a graph already, and stays as it is. Before Keras 3.15 the other two set nothing back either,
their metrics add up over the calls: the cure changes nothing there.

## What it changes
Nothing where all batches have one shape: the same graph of the step with the same variables. Where shapes vary,
reassociated: batches may go through the graph for any number of rows that Keras has for the others.

## In the source
```python
@tf.function(reduce_retracing=True, autograph=False)
def step(x, y):
    model.reset_metrics()
    return model.train_function(iter([(x, y, None)]))         # after the first model.train_on_batch(x, y)

loss = float(step(x, y)["loss"])
```
"""

from __future__ import annotations

from flatout.cures import _frozen
from flatout.cures._keras_versions import that_adds_metrics_up
from flatout.cures._spec import Cure
from flatout.model.case import Case
from flatout.model.evidence.program import BATCH_METHODS, KerasCall


def skip(case: Case) -> str | None:
    if version := that_adds_metrics_up(case):
        return f"Keras {version} sets no metrics back in train_on_batch: they add up over its calls"
    seen = [item for item in case.evidence_of(KerasCall) if item.method in BATCH_METHODS and item.calls > 1]
    if not seen:
        return "neither train_on_batch nor test_on_batch is called again and again"
    if not any(item.single for item in seen):
        return "train_on_batch is called with class weights, or with data that are not arrays"
    return None


def by_hand(case: Case, value: str) -> str:
    from flatout.cures.direct_batch.edit import by_hand

    return _frozen.told(by_hand, case)


CURE = Cure(
    does="run train_on_batch as one graph",
    equivalence="reassociated",
    side="host",
    skip=skip,
    conflicts=("free-compute",),
    after=("no-run-eagerly", "direct-fit"),
    by_hand=by_hand,
)
