"""Keras runs several training steps in one call of its graph.

## What it does
Compiles models with `steps_per_execution` where the program left it at one, for Keras 3 and tf_keras.

## When it pays
When steps are so short that returning to Python between them costs a good part: small models, small batches. A `fit`
with a small batch took 2394 µs per step, and 1094 µs with eight steps per call.

## What it changes
Reassociated: the same updates in the same order. Logs and the progress bar come once per call. A program with a
callback of its own that acts on each batch (`on_train_batch_end`) is left as it is: it would see fewer of them.

## In the source
```python
model.compile(optimizer="adam", loss="mse", steps_per_execution=32)
```
"""

from __future__ import annotations

from collections.abc import Sequence

from flatout.cures import _frozen
from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case

LONG_MS = 200.0
"""Steps that last longer cannot gain a measurable part by being started together."""
CALL_MS = 250.0
"""Longest call aimed at: callbacks and the progress bar should still run a few times a second."""


def skip(case: Case) -> str | None:
    step = queries.step_stack(case)
    if step is None or step.step != "fit":
        return "the steps are not those of a Keras fit"
    if (step.steps_per_execution or 1) > 1:
        return f"the model already runs {step.steps_per_execution} steps per call"
    if queries.step_ms(case) > LONG_MS:
        return f"a step takes {queries.step_ms(case):.0f} ms; the time between two of them does not matter"
    return None


def values(case: Case) -> Sequence[str]:
    """A few, and as many as fit into a call of `CALL_MS`."""
    seen = case.steps.count if case.steps else 0
    fitting = [n for n in (8, 16, 32, 64, 128) if n * queries.step_ms(case) <= CALL_MS and n * 4 <= seen]
    return tuple(str(n) for n in dict.fromkeys((fitting[0], fitting[-1]))) if fitting else ("4",)


def by_hand(case: Case, value: str) -> str:
    return _frozen.told(_frozen.batch_callback, case)


CURE = Cure(
    does="run {value} steps in one call (steps_per_execution)",
    equivalence="reassociated",
    side="host",
    # A model that runs eagerly makes one step per call.
    after=("no-run-eagerly",),
    values=values,
    skip=skip,
    by_hand=by_hand,
)
