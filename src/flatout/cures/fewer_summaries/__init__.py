"""TensorBoard is given histograms and values of batches less often, and no pictures of weights.

## What it does
`keras.callbacks.TensorBoard` writes histograms of all weights every tenth epoch (`histogram_freq=10`) where it does so
more often, no weights as pictures (`write_images=False`), and values of batches every 500 batches (`update_freq=500`)
where they come more often. What is larger already stays.

## When it pays
Where summaries take a good part of the run: histograms of many weights after short epochs, or `update_freq="batch"`. It
is a cure of the run, not of the step: it is measured by runs from start to end.

## What it changes
Semantic: the training is the same, but TensorBoard shows fewer points. That is the user's to decide, so it is tried
when it is named only (`--lever fewer-summaries`), and never part of a claim otherwise. Left alone: classes of the
program's own, also those that are made from `TensorBoard`, and `tf.summary.*` in a loop, for which the finding says
what to write.

## In the source
```python
tensorboard = keras.callbacks.TensorBoard("logs", histogram_freq=10, update_freq=500)
```
"""

from __future__ import annotations

from flatout.cures import _trial_edit
from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case

HISTOGRAMS = 10
"""Epochs from one histogram to the next."""
BATCHES = 500
"""From one value of a batch to the next."""


def skip(case: Case) -> str | None:
    if queries.step_kind(case) != "fit":
        return "no model is fitted"
    if not any("TensorBoard" in text for _, text in _trial_edit.sources(case)):
        return "the program has no TensorBoard callback"
    return None


CURE = Cure(
    does="write summaries for TensorBoard less often",
    equivalence="semantic",
    side="run",
    skip=skip,
    saves=("summary",),
    fewer_results=True,
)
