"""A step that stands in the loop itself becomes a traced function.

## What it does
Finds the statements from the gradient tape to the last update of the weights, or the call of the model where
nothing is trained, and moves them into a `tf.function` above the loop. What changes from turn to turn, and what
belongs to the function around the loop, is given to it; what the rest of the program reads comes back. From
outside a running program only whole functions can be traced, so this lever is an edit of the source, and the
trial runs the edited source.

## When it pays
When Python and dispatch take a good part of the step, and the step is in no function of its own, or in one
that also prints, logs or counts.

## What it changes
Reassociated: the same operations, which a graph may fuse and reorder; losses agree to rounding. Ops that draw
random numbers without a seed of their own draw others in a graph. Statements that a trace cannot hold (prints,
lists that grow, attributes that are set, numbers of NumPy) stay outside; where they stand between the tape and
the update, or where the step reads something that is set elsewhere, the source is left as it is.

## In the source
```python
@tf.function(reduce_retracing=True)
def train_step(images, labels):
    with tf.GradientTape() as tape:
        loss = loss_function(labels, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for images, labels in dataset:
    loss = train_step(images, labels)
    history.append(float(loss))
```
"""

from __future__ import annotations

from flatout.cures import _trial_edit, function
from flatout.cures._spec import Cure
from flatout.model.case import Case


def skip(case: Case) -> str | None:
    from flatout.cures.extract_step.edit import edit

    why = function.skip(case)
    if why is not None:
        return why
    if any(value != function.PARTS for value in function.values(case)):
        return "the step is a function of its own; function is the lever for it"
    if _trial_edit.changes_something(edit, case):
        return None
    return "no step stands in a loop of its own files, or it does there what a graph cannot"


CURE = Cure(
    equivalence="reassociated",
    side="host",
    conflicts=("function", "free-compute"),
    # A loop is rewritten before the step around it is taken out.
    after=("no-debug", "vectorize-loop", "whole-batch"),
    skip=skip,
)
