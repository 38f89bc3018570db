"""A step that is written out in the training loop becomes a traced function.

## What it does
Finds the statements from the gradient tape to the last update of the weights, or the call of the model where nothing
is trained, and moves them into a `tf.function` above the loop. Values that change between iterations, and locals of
the enclosing function, become its arguments; values that the rest of the program reads are returned. In a running
program only whole functions can be traced, so this lever is an edit of the source, and the trial runs the edited
source. A step that is a function of its own already is taken out together with the metrics that the loop updates behind
its call.

## When it pays
When Python and dispatch take a good part of the step, and the step is not in a function of its own, or in one that
also prints, logs or counts.

## What it changes
Reassociated: the same operations, which a graph may fuse and reorder; losses agree to rounding. Ops that draw random
numbers without a seed of their own draw others in a graph. Statements that a trace cannot hold (prints, lists that
grow, attributes that are set, NumPy numbers) stay outside: those between the tape and the update are moved behind the
call or before it, in their order, if neither they nor what they are moved over need each other. Where it depends on a
statement between them whether there is an update (`if is_nan(loss): continue`), tape and update become two functions.
Attributes that are set elsewhere (`self.beta`), what Python or NumPy makes of the step's arguments (`int(done)`) and
what NumPy draws are read above the call and passed: Python numbers as tensors of the type that the program computes in,
which is the type that they would take beside a tensor. Where Python decides something by such a number, or where the
step reads something else that is set elsewhere, the source is left as it is, and the line in the way is named.

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
from flatout.model import queries
from flatout.model.case import Case
from flatout.model.evidence.steps import EagerTape


def skip(case: Case) -> str | None:
    from flatout.cures.extract_step.edit import by_hand, edit, takes_in_metrics

    why = function.skip(case)
    # A train_step of Keras that prints or converts needs run_eagerly; the rest of it does not.
    eager_fit = any(item.per_step >= 0.5 for item in case.evidence_of(EagerTape)) and queries.step_kind(case) == "fit"
    in_graph = queries.step_kind(case) in ("function", "train-function")
    if why is not None and not eager_fit and not (in_graph and takes_in_metrics(case)):
        return why
    if why is None and function.own_function(case) is not None and not takes_in_metrics(case):
        return "the step is a function of its own; function is the lever for it"
    if _trial_edit.changes_something(edit, case):
        return None
    reasons = (by_hand(text, path, case, "") for path, text in _trial_edit.sources(case))
    return next(filter(None, reasons), "no step was found in a loop of the program's files")


CURE = Cure(
    does="move the training step into a @tf.function",
    equivalence="reassociated",
    side="host",
    conflicts=("function", "free-compute"),
    # A loop is rewritten before the step around it is taken out.
    after=("no-debug", "vectorize-loop", "whole-batch"),
    skip=skip,
)
