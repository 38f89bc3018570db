"""A loop that passes one sample at a time to the model passes the whole batch at once.

## What it does
Where each iteration of a loop adds a batch axis to its sample (`x[tf.newaxis]`, `tf.expand_dims(x, 0)`, `batch[i : i
+ 1]`) and collects losses, gradients or results, the loop is replaced by one iteration with the whole batch. A sum
over the samples becomes the number of samples times the result for the batch, or just that result where the loss
sums. This lever is an edit of the source, and the trial runs the edited source.

## When it pays
Nearly always: the same matrix products, with as many rows as the batch has samples, in one call.

## What it changes
Reassociated, for a model that treats each sample independently, and a loss that is the mean of those of its samples
(`whole-batch=mean`) or their sum (`whole-batch=sum`). The trial checks that: batch normalization, or the other kind
of loss, gives other numbers, and nothing is claimed. Loops whose iterations run the optimizer, draw random numbers,
print, depend on each other, or use a sample in any other way are left as they are.

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
        return "no loop goes through the samples of a batch"
    if values(case):
        return None
    return "the iterations of the loop have side effects, or use their samples in another way"


CURE = Cure(
    does="pass whole batches to the model",
    equivalence="reassociated",
    side="host",
    conflicts=("vectorize-loop",),
    values=values,
    skip=skip,
)
