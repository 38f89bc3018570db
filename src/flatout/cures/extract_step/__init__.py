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

from flatout.cures import function
from flatout.cures.extract_step import edit as extract_step
from flatout.model.case import Case, Equivalence
from flatout.source.editing import source_text
from flatout.source.editing.program_files import own_files

EQUIVALENCE: Equivalence = "reassociated"
SIDE = "host"
CONFLICTS = ("function", "free-compute")


def skip(case: Case) -> str | None:
    why = function.skip(case)
    if why is not None:
        return why
    if any(value != function.PARTS for value in function.values(case)):
        return "the step is a function of its own; function is the lever for it"
    sources = {path: source_text.load(path) for path in own_files(case)}
    if any(text and extract_step.edit(text.text, path, case) for path, text in sources.items()):
        return None
    return "no step stands in a loop of its own files, or it does there what a graph cannot"
