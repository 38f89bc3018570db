"""Training stands still while checkpoints are written, for a good part of the run.

## What it is
`Model.save`, `save_weights`, `tf.train.Checkpoint` and `Saver.save` write in the main thread. Until the file is closed
no step is made.

## Why it costs
Saving takes the time of the copy, of the serialisation and of the disk, each time anew. After every epoch of a few
seconds, or after every batch, that adds up to more than the steps. A whole model holds the optimizer's slots as well:
with Adam three times the bytes of the weights.

## How it looks
```python
for batch in dataset:
    train_step(batch)
    checkpoint.save("model/ckpt")               # after every batch
```

## The cure
```python
for number, batch in enumerate(dataset):
    train_step(batch)
    if number % 1000 == 999:
        checkpoint.save("model/ckpt")
```
Save every few minutes, which is what may be lost; with `ModelCheckpoint`, once an epoch or with `save_freq`, and with
`save_weights_only=True` where training is not continued from it. `tf.train.CheckpointOptions(enable_async=True)` lets
`tf.train.Checkpoint` write in the background; for `ModelCheckpoint` of Keras 3 the lever `background-checkpoint` does,
with the same files at the end.

## When it is not worth it
When the run may be ended at any time and its steps are dear.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.causes._run_parts import each, of_run, seconds
from flatout.causes._spec import Cause
from flatout.model.case import Case, Finding, Fix, RunPart

OFTEN = 0.2
"""Checkpoints per step from which on they are as good as at every one."""


def in_run(case: Case) -> Iterator[Finding]:
    for part in case.run.of("checkpoint") if case.run is not None else ():
        yield from of_run(
            "checkpoint-bound",
            case,
            f"`{part.name}` took {seconds(part.seconds)}{each(part)}, in which no step was made.",
            part.seconds,
            part.where,
            [*_beside(part), Fix(_advice(case, part), equivalence="semantic")],
        )


def _beside(part: RunPart) -> list[Fix]:
    """For what the cure takes on."""
    if not part.name.startswith("ModelCheckpoint"):
        return []
    return [Fix("Write checkpoints beside the training.", lever="background-checkpoint", equivalence="exact")]


def _advice(case: Case, part: RunPart) -> str:
    steps = case.steps.count if case.steps is not None else 0
    epochs = case.run.epochs if case.run is not None else 0
    if steps and part.count >= OFTEN * steps and part.count > max(epochs, 1):
        return f"Save every thousandth step or once an epoch, not {part.count:,} times in {steps:,} steps."
    if part.name.startswith("ModelCheckpoint"):
        return "Give ModelCheckpoint save_weights_only=True, and a save_freq of more steps."
    if part.count == 1 and part.name.endswith(".save_weights"):
        return "Write them to a fast local disk, and copy them from there when the program is done."
    if part.count == 1:
        return "Save weights alone where the graph and the optimizer's state are not needed."
    if part.name.endswith(".save") and "Model" in part.name:
        return "Save weights alone (save_weights), and every few minutes rather than every epoch."
    if "Checkpoint" in part.name:
        return "Save every few minutes, or in the background: CheckpointOptions(enable_async=True)."
    return "Save every few minutes rather than every epoch."


CAUSE = Cause(group="run", in_run=in_run, cures=("background-checkpoint",))
