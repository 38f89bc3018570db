"""Writing summaries for TensorBoard takes a good part of the run.

## What it is
`tf.summary.*`, the `TensorBoard` callback and TF1's `FileWriter` copy values to the host, make histograms and pictures
of them and write these, in the main thread.

## Why it costs
A scalar takes a tenth of a millisecond and makes the step wait for the device. A histogram of every weight or a picture
takes as long as some steps, and `update_freq="batch"` writes at each one.

## How it looks
```python
tensorboard = keras.callbacks.TensorBoard(histogram_freq=1, write_images=True, update_freq="batch")
```

## The cure
```python
tensorboard = keras.callbacks.TensorBoard(histogram_freq=10, update_freq=500)
```
The lever `fewer-summaries` does that; as there are fewer points to look at, `tune` tries it only where it is named
(`--lever fewer-summaries`). In a loop of the program's own, write every hundredth step: `if step % 100 == 0`.

## When it is not worth it
When histograms are what the run is made for.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.causes._run_parts import each, of_run, seconds
from flatout.causes._spec import Cause
from flatout.model.case import Case, Finding, Fix


def in_run(case: Case) -> Iterator[Finding]:
    parts = case.run.of("summary") if case.run is not None else []
    if not parts:
        return
    lever = None
    part, whole = parts[0], sum(one.seconds for one in parts)
    if part.name.startswith("TensorBoard"):
        lever = "fewer-summaries"
        advice = "Give TensorBoard a larger histogram_freq (0: none), no write_images, and update_freq=500."
    elif "histogram" in part.name or "image" in part.name:
        advice = f"Write `{part.name}` every few hundred steps; scalars may come more often."
    else:
        advice = "Write summaries every hundredth step: if step % 100 == 0."
    yield from of_run(
        "summary-bound",
        case,
        f"Summaries took {seconds(whole)}; `{part.name}` is {seconds(part.seconds)} of it{each(part)}.",
        whole,
        part.where,
        [Fix(advice, lever=lever, equivalence="semantic")],
    )


CAUSE = Cause(group="run", in_run=in_run, cures=("fewer-summaries",))
