"""A tensor that Python goes through element by element is read once, before the loop.

## What it does
`for i in range(64): y[i] = max(targets[i])` dispatches a slice and waits for a value in every turn. The edit reads the
whole tensor into an array above the loop, and the loop takes its elements from there. Which tensors are read this way
shows in the source and in the lines on which the run has seen values being pulled, so this lever is an edit of the
source, and the trial runs the edited source.

## When it pays
When a loop inside of the step takes many elements of a tensor: targets of a replay batch, boxes of a detection, tokens
of a text. A slice of an eager tensor is an op with its dispatch, an element of an array is not.

## What it changes
Exact: the same values, from one copy. They are NumPy's numbers afterwards, not tensors; a program for which that makes
a difference does not pass its trial.

## In the source
```python
targets_values = np.asarray(targets)
for i in range(64):
    y[i] = max(targets_values[i])
```
"""

from __future__ import annotations

from flatout.cures._spec import Cure
from flatout.model.case import Case


def skip(case: Case) -> str | None:
    if any(finding.cause == "host-sync" for finding in case.findings):
        return None
    return "no values are pulled from TensorFlow in each step"


CURE = Cure(does="read the tensor once, before the loop", equivalence="exact", side="host", skip=skip)
