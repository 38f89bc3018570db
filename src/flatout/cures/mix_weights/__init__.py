"""Weights of one model are copied to another, or mixed with it, without a detour through Python.

## What it does
As an edit, a copy by `get_weights` and `set_weights`, a soft update written with NumPy, or a loop of `assign` becomes
one traced function that assigns all weights. A share that changes while the program runs is passed as a tensor, as
each number of Python would be traced anew. Injected into a running program, `get_weights` and `set_weights` read
and write the variables directly, without the checks and conversions that Keras makes for each of them.

## When it pays
When a target network follows another one in every step or nearly so.

## What it changes
Reassociated: the mixture is computed by TensorFlow in the type of the weights, where NumPy may have used doubles for
the share. Injected alone: nothing.

## In the source
```python
@tf.function
def mix_weights(target, source, share):
    for old, new in zip(target.weights, source.weights):
        old.assign(share * new + (1 - share) * old)


mix_weights(target, model, tau)
```
"""

from __future__ import annotations

from flatout.cures import _frozen
from flatout.cures._spec import Cure
from flatout.model.case import Case
from flatout.model.evidence.steps import EagerLine

OFTEN = 3
"""Calls from which a line is worth a change. A scouting run sees the first few of them only."""


def skip(case: Case) -> str | None:
    if any(
        item.of in ("get-weights", "set-weights", "assign") and item.calls >= OFTEN
        for item in case.evidence_of(EagerLine)
    ):
        return None
    return "weights are not copied again and again"


def by_hand(case: Case, value: str) -> str:
    from flatout.cures.mix_weights.edit import by_hand

    return _frozen.told(by_hand, case)


CURE = Cure(
    does="copy weights without a detour through Python",
    equivalence="reassociated",
    side="host",
    skip=skip,
    by_hand=by_hand,
)
