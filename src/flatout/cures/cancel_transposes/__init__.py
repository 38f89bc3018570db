"""Pairs of transposes that undo each other are removed, with elementwise operations between them or not.

## What it does
Where a graph transposes a tensor and later transposes it back, the original is used instead. Activations, sums,
scales, concatenations and paddings between the two are computed in the original layout, and so are means, sums and
maxima over axes. TensorFlow itself removes only pairs with nothing in between.

## When it pays
When layers were ported from a framework that puts channels first: each of them transposes its input for the
convolution and its result back, and the next layer does the same. A transpose computes nothing and moves the whole
tensor through memory, once more for the gradient.

## What it changes
Reassociated: each element is computed as before; sums over axes may add in another order. Gradients with respect to a
tensor between the two transposes are no longer available: a program that asks for them fails in its trial.

## In the source
There is no edit: which pairs meet depends on how the layers are combined. By hand, keep channels last from the input
to the last layer, and transpose the data once, where it is read. Until then:
```
flatout run --with cancel-transposes train.py
```
"""

from __future__ import annotations

from flatout.cures._spec import Cure
from flatout.model.case import Case


def skip(case: Case) -> str | None:
    if any(finding.cause == "layout-churn" for finding in case.findings):
        return None
    return "no transposes between layouts were seen"


CURE = Cure(does="remove transposes that undo each other", equivalence="reassociated", side="compute", skip=skip)
