"""A loop that gives one sample after another to the model gives it the whole batch.

## What it does
Where each turn of a loop gives its sample an axis of its own (`x[tf.newaxis]`, `tf.expand_dims(x, 0)`,
`batch[i : i + 1]`) and gathers losses, gradients or answers, a single turn with the batch in place of the sample
takes its place. What was the sum over the samples is then the number of samples times what comes out for the batch, or
just that where the loss sums. This lever is an edit of the source, and the trial runs the edited source.

## When it pays
Nearly always: the same products of matrices, with as many rows as the batch has samples, in one call.

## What it changes
Reassociated, for a model that treats each sample for itself, and a loss that is the mean of those of its samples
(`whole-batch=mean`) or their sum (`whole-batch=sum`). The trial tells: a batch normalization, or the other kind of
loss, gives other numbers, and nothing is claimed. Loops whose turns take a step of the optimizer, draw random numbers,
print, need each other, or use a sample in any other way are left as they are.

## In the source
```python
samples = len(images)
loss, gradients = gradients_of(images, labels)
total += samples * float(loss)
```
"""

from __future__ import annotations

from collections.abc import Sequence

from flatout.cures import _trial_edit
from flatout.cures._spec import Cure
from flatout.model.case import Case


def values(case: Case) -> Sequence[str]:
    from flatout.cures.whole_batch.edit import kinds

    found = (kinds(text, path, case) for path, text in _trial_edit.sources(case))
    return next((settings for settings in found if settings), ())


def skip(case: Case) -> str | None:
    if not any(finding.cause == "per-sample-loop" for finding in case.findings):
        return "no loop takes a batch apart"
    if values(case):
        return None
    return "the turns of the loop do more than compute, or use their samples in another way"


CURE = Cure(equivalence="reassociated", side="host", conflicts=("vectorize-loop",), values=values, skip=skip)
