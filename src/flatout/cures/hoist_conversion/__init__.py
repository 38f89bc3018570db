"""An array that never changes is converted to a tensor once, before the loop.

## What it does
`tf.constant(table)` in every step copies the array in every step. Where the source shows that neither the array nor
its elements are written in the loop, the conversion is moved above it. A running program does not show that, so this
lever is an edit of the source, and the trial runs the edited source.

## When it pays
When the array is large compared with the step's own work.

## What it changes
Exact: the same tensor, made once.

## In the source
```python
table = tf.constant(distances)
for rows in batches:
    loss = step(table, rows)
```
"""

from __future__ import annotations

from flatout.cures._spec import Cure
from flatout.model.case import Case


def skip(case: Case) -> str | None:
    if any(finding.cause == "tensor-reconversion" for finding in case.findings):
        return None
    return "no array is converted again and again"


CURE = Cure(does="convert arrays to tensors once, before the loop", equivalence="exact", side="host", skip=skip)
