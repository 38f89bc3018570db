"""A tf.function that is created again and again from the same code reuses the traces of the first.

## What it does
Remembers the functions that `tf.function` has created. From the third on, one with the same code, bound object,
closure, defaults and options uses the traces of the first.

## When it pays
When a helper wraps a step in `tf.function` at every call, or a decorated function is defined inside a loop: each new
one is traced again, and a trace costs as much as tens or hundreds of steps.

## What it changes
Nothing: exact. Python values that the code reads from outside (globals, attributes, closures) are compared. If one
differs, or if the code has side effects (prints, lists that grow), the function is traced as before.

## In the source
```python
self.step = tf.function(self._step)        # once, in __init__

def train_on(self, x, y):
    return self.step(x, y)
```
"""

from __future__ import annotations

from flatout.cures import _frozen
from flatout.cures._spec import Cure
from flatout.model.case import Case

FROM_MAKING = 3


def skip(case: Case) -> str | None:
    made = [f for f in case.functions if f.instances >= FROM_MAKING + 1]
    return None if made else "no tf.function is created more than a few times from the same code"


def by_hand(case: Case, value: str) -> str:
    from flatout.cures.reuse_functions.edit import refusals

    return _frozen.told(lambda text, path, case: next(refusals(text, path, case), None), case)


CURE = Cure(does="create each tf.function once", equivalence="exact", side="host", skip=skip, by_hand=by_hand)
