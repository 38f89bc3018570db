"""A Keras model that was compiled to run eagerly runs in a graph again.

## What it does
Ignores `run_eagerly=True`, in `compile` and where it is set on the model, for Keras 3 and tf_keras.

## When it pays
Nearly always: an eager `fit` dispatches each operation of each layer from Python, in every step. A script with a
small convolutional model became 2.7 times as fast.

## What it changes
Reassociated: the same operations, which a graph may fuse and reorder; losses agree to rounding. A `train_step`, a
loss or a layer that counts, prints, lets a list grow, or reads what the program changes while it trains stays eager,
and the line is named. One that needs eager values (`.numpy()`) fails, and the trial with it.

## In the source
```python
model.compile(optimizer="adam", loss="mse")        # without run_eagerly=True
```
"""

from __future__ import annotations

from flatout.cures import _frozen
from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case
from flatout.model.evidence.program import ModelCompiled


def skip(case: Case) -> str | None:
    if queries.step_kind(case) not in ("fit", "predict", "evaluate"):
        return "the steps are not those of a Keras fit, predict or evaluate"
    if any(item.run_eagerly for item in case.evidence_of(ModelCompiled)):
        return None
    return None if queries.runs_eagerly(case) else "no model is compiled with run_eagerly"


def by_hand(case: Case, value: str) -> str:
    return _frozen.told(_frozen.of_keras, case)


CURE = Cure(
    does="compile the model without run_eagerly", equivalence="reassociated", side="host", skip=skip, by_hand=by_hand
)
