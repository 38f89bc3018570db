"""A callback takes a good part of the run, and training waits for it.

## What it is
Keras calls the hooks of callbacks in the main thread, between epochs or between batches. While a hook draws, writes or
asks a server, no step is made.

## Why it costs
The time of a hook is added to the run as it is: nothing overlaps with it. A gallery of 16 pictures after each of three
epochs took 7 of the 15 s of one run, whose steps took 1.4 s.

## How it looks
```python
class Gallery(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        draw(self.model.predict(self.pictures))     # 2.4 s, after each epoch
```

## The cure
```python
class Gallery(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if epoch % 10 == 9:
            draw(self.model.predict(self.pictures))
```
Do it less often, on fewer samples, or hand arrays to a process of its own that draws while training goes on:
```python
class Gallery(keras.callbacks.Callback):
    def __init__(self, pictures):
        super().__init__()
        self.pictures = pictures
        self.workers = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))

    def on_epoch_end(self, epoch, logs=None):
        self.workers.submit(draw, self.model.predict(self.pictures))    # `draw` in a module that does not train

    def on_train_end(self, logs=None):
        self.workers.shutdown()                                         # waits for the last picture
```
Where the hook calls such a function, flatout writes this line with its name. The new process imports the program again,
so the training belongs below `if __name__ == "__main__"`. Where the time goes to `savefig` of matplotlib, the lever
`background-figures` draws the files in a process of its own. For other work no lever does it: what a hook hands over
must be arrays, and whether it may come later only you know. A hook for each batch (`on_train_batch_end`) also keeps
Keras from dispatching batches ahead: move it to the end of the epoch.

## When it is not worth it
When a run of full length has so many steps per epoch that the hook is a small part of it: the share of a short run
overstates what comes once an epoch.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.causes._by_hand import every_few_epochs, in_a_process
from flatout.causes._keras_calls import predicts_row_by_row
from flatout.causes._run_parts import (
    IN_BACKGROUND,
    draw_figures,
    each,
    mostly,
    of_run,
    predicts_and_scores,
    seconds,
)
from flatout.causes._spec import Cause
from flatout.model.case import Case, Finding, Fix, RunPart


def in_run(case: Case) -> Iterator[Finding]:
    for part in case.run.of("callback") if case.run is not None else ():
        if not predicts_and_scores(part) and not predicts_row_by_row(case, part):
            yield from of_run(
                "slow-callback",
                case,
                f"`{part.name}` took {seconds(part.seconds)}{each(part)}, in which no step was made.{mostly(part)}",
                part.seconds,
                part.where,
                [
                    *([IN_BACKGROUND] if draw_figures(part.lines()) else []),
                    Fix(_advice(part), equivalence="semantic"),
                ],
            )


def _advice(part: RunPart) -> str:
    hook = part.name.rpartition(".")[2]
    if "_batch_" in hook:
        return (
            "Move this work to on_epoch_end, or do it every hundredth batch: a hook of batches also keeps Keras from "
            "dispatching them ahead."
        )
    if part.name.endswith((".before_run", ".after_run")):
        return "Do this every hundredth run of the session: a SecondOrStepTimer says when."
    if hook in ("on_train_begin", "on_train_end"):
        return "Do this on fewer samples, or in a process of its own: it is done once for each fit."
    line = next(iter(part.lines()), None)
    places = [*line.via, line.where] if line is not None else []
    elsewhere = next((text for place in places if (text := in_a_process(part.where, place))), "")
    seldom = every_few_epochs(part.where) if "_epoch_" in hook else ""
    if elsewhere:
        first = f"Do this every few epochs (`{seldom}`)" if seldom else "Do this every few epochs"
        return f"{first}, or in a process of its own while training goes on: {elsewhere}"
    if seldom:
        return f"Do this every few epochs (`{seldom}`), on fewer samples, or in a process of its own: see its page."
    return "Do this every few epochs, on fewer samples, or in a process of its own while training goes on."


CAUSE = Cause(group="run", in_run=in_run)
