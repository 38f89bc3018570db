"""Checkpoints are written beside the training, not in it.

## What it does
`keras.callbacks.ModelCheckpoint` saves in the main thread: no step is made until the file is closed. This lever makes a
second model of the same configuration, copies the values of all variables into it when a checkpoint is due, which takes
as long as a copy in memory, and lets a thread save that one while training goes on. One file is written at a time; the
next one waits for it. A file is written under another name (`.part-model.keras`) and renamed when it is complete, so
there is never half a file under the final name, also when the program is killed. `fit` returns when the last file is
complete.

## When it pays
Where checkpoints take a good part of the run: large models, slow disks, a checkpoint every few steps. It is a cure of
the run, not of the step: it is measured by runs from start to end.

## What it changes
Exact: the same files with the same values. While a file is being written, the one before it is still there under its
name: a program that reads its own checkpoints *during* `fit` may read an older one. Weights and the optimizer's slots
are in the memory of the host once more. What goes wrong in writing is raised at the next checkpoint, or at the end of
`fit`. For Keras 3; local files that end in `.keras` or `.weights.h5`; not under a distribution strategy. Where the
model cannot be made from its configuration, checkpoints are written as before.

## In the source
```python
checkpoint = BackgroundCheckpoint("model.keras")      # a subclass of ModelCheckpoint that the patch adds
model.fit(x, y, callbacks=[checkpoint])
```
"""

from __future__ import annotations

from flatout.cures import _trial_edit
from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case


def skip(case: Case) -> str | None:
    if queries.step_kind(case) != "fit":
        return "no model is fitted"
    if not any("ModelCheckpoint" in text for _, text in _trial_edit.sources(case)):
        return "the program makes no ModelCheckpoint"
    return None


CURE = Cure(
    does="write checkpoints beside the training", equivalence="exact", side="run", skip=skip, saves=("checkpoint",)
)
