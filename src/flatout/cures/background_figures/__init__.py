"""Figures are drawn into files beside the training, in a process of their own.

## What it does
`savefig` of matplotlib draws in the main thread: no step is made until the file is closed. This lever sends each
figure, as it is at the call, to a second process, which draws it into its file. The training goes on meanwhile. Figures
are drawn one after the other, in the order of the calls; with five of them waiting the next call waits as well.

## When it pays
Where figures take a good part of the run: pictures of samples after each epoch, of a GAN or an autoencoder. Sending a
figure takes a few milliseconds, drawing it some tenths of a second. It is a cure of the run, not of the step: it is
measured by runs from start to end. What makes the figure (`subplots`, `imshow`) stays in the main thread.

## What it changes
Exact: the same files. They are complete when the program ends, not when `savefig` returns, so a program that reads its
own pictures is left alone. What goes wrong in drawing is raised at a later `savefig`, or told at the end. A figure that
cannot be sent (it holds a lambda, or an object of a class of the script) and one that goes to something else than a
file are drawn as ever. A program that is killed loses what was waiting.

## In the source
```python
figures = BackgroundFigures()                         # a class that the patch adds
figures.save(plt.gcf(), f"epoch-{epoch}.png")         # plt.savefig(f"epoch-{epoch}.png")
```
"""

from __future__ import annotations

import re

from flatout.causes import drawing_seconds
from flatout.cures import _trial_edit
from flatout.cures._spec import Cure
from flatout.model.case import Case

READS = re.compile(
    r"\b(?:imread|mimread|mimsave|get_writer|Image\.open|load_img|image_dataset_from_directory|read_bytes|log_image"
    r"|log_artifacts?|add_image|decode_png|decode_jpeg|decode_image|glob|iglob|rglob|listdir|scandir|wandb|ffmpeg)\b"
)
"""In a program that saves figures: it may read them."""


def skip(case: Case) -> str | None:
    texts = [text for _, text in _trial_edit.sources(case)]
    if not any("savefig" in text for text in texts):
        return "the program saves no figures"
    if any("addfont" in text for text in texts):
        return "the program adds fonts, which another process does not have"
    found = next((match for text in texts if (match := READS.search(text))), None)
    if found is not None:
        return f"the program may read its own pictures ({found[0]})"
    return None


CURE = Cure(
    does="draw figures in a process of their own",
    equivalence="exact",
    side="run",
    skip=skip,
    could_save=drawing_seconds,
)
