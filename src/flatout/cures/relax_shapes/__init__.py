"""Functions are traced once for shapes and numbers that vary, not once for each value.

## What it does
Gives every `tf.function` `reduce_retracing=True`, so that a dimension that has changed stays open in the graph. A
Python number that has changed twice is passed as a tensor of float32 or int32.

## When it pays
When a step is traced again and again: batches of many lengths, a learning rate or a step number as an argument. One
trace costs as much as tens or hundreds of steps.

## What it changes
Reassociated: a dimension that is open in the graph may choose another kernel, and a number in single precision is
rounded once more. A function that cannot be traced that way keeps the old one; the edit leaves Python numbers alone
where the file computes in float64.

## In the source
```python
@tf.function(reduce_retracing=True)
def step(tokens, rate): ...

step(tokens, tf.constant(rate))
```
"""

from __future__ import annotations

from flatout.cures._spec import Cure
from flatout.model.case import Case


def skip(case: Case) -> str | None:
    often = [f for f in case.functions if f.traces - 2 * f.instances >= 1 or f.why]
    return None if often else "no tf.function is traced again for another shape or number"


CURE = Cure(does="trace once for all shapes and numbers", equivalence="reassociated", side="host", skip=skip)
