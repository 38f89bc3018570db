"""Pairs of transposes that undo each other are left out, whatever is computed between them.

## What it does
Where a graph turns a tensor and something after it turns it back, the first form is used again. Activations, sums,
scales, concatenations and paddings that stand between the two are computed in that form too, and so are means, sums
and maxima over axes. TensorFlow takes out only pairs with nothing in between.

## When it pays
When layers were ported from a framework that puts channels first: each of them turns its input for the convolution
and turns the result back, and the next one begins in the same way. A transpose computes nothing and moves the whole
tensor through memory, once more for the gradient.

## What it changes
Reassociated: each element is computed as before; sums over axes may add in another order. Gradients with respect to
a tensor between the two transposes are no longer to be had: a program that asks for them fails in its trial.

## In the source
There is no edit: which pairs meet depends on how the layers are put together. By hand, keep channels last from
the input to the last layer, and turn the data once, where it comes in. Until then:
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


CURE = Cure(equivalence="reassociated", side="compute", skip=skip)
