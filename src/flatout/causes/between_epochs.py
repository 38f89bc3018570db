"""The run stands still between epochs: iterators, buffers, or work of the program's own.

## What it is
At each epoch the iterator over the dataset is made anew. A shuffle buffer is filled before the first element comes out,
files are opened and listed again, worker threads are started. A program's own loop may do other work there. Before
that the old iterator is taken down, which waits for the thread that tunes it: mostly some milliseconds, now and then a
second or more where the processors are busy. With `options.autotune.enabled = False` there is no such thread.

## Why it costs
No step is made meanwhile. A buffer of 50,000 pictures is 50,000 pictures to decode before the first batch of each
epoch; with short epochs that is most of the run.

## How it looks
```python
dataset = dataset.shuffle(50_000).batch(32)
for epoch in range(100):
    for batch in dataset:           # the buffer is filled here, each time
        train_step(batch)
```

## The cure
```python
dataset = dataset.shuffle(50_000).repeat().batch(32).prefetch(tf.data.AUTOTUNE)
model.fit(dataset, epochs=100, steps_per_epoch=samples // 32)
```
One iterator over all epochs keeps its buffer full; elements of two epochs mix where they meet. With `repeat()` at the
end they do not: the lever `one-iterator` does that. Figures that a loop saves with matplotlib between epochs are drawn
in a process of their own by the lever `background-figures`. Or shuffle what is cheap (names of files, indices), decode
afterwards, and `cache()` before the shuffle.

## When it is not worth it
When an epoch takes minutes.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.causes._run_parts import (
    IN_BACKGROUND,
    LIBRARIES,
    NUMERIC,
    draw_figures,
    each,
    lines_between_epochs,
    most_of,
    of_run,
    seconds,
    spot,
)
from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix, Where

OF_RUN, WITH_SHUFFLE = 0.35, 0.2
"""Of the run without its imports: what new iterators have to cost, and what where a shuffle buffer is filled anew. They
cost something in every program, and now and then one takes a second or more to be taken down."""


def iterators(case: Case) -> Iterator[Finding]:
    """An iterator that is made anew."""
    parts = [part for part in case.run.of("epoch-start") if part.count != 1] if case.run is not None else []
    if not parts:
        return
    part, whole = parts[0], sum(one.seconds for one in parts)
    shuffle = _shuffle(case)
    least = OF_RUN if shuffle is None else WITH_SHUFFLE
    if case.run is not None and whole < least * (case.run.seconds - case.run.seconds_of("import")):
        return
    why, advice = "", "Use one iterator for all epochs: fit on dataset.repeat() with steps_per_epoch."
    if shuffle is not None:
        why = f" The shuffle buffer of {spot(shuffle)} is filled anew each time."
        advice = "Put repeat() after the shuffle and give steps_per_epoch, or cache() before it, or shuffle indices."
    yield from of_run(
        "between-epochs",
        case,
        f"Between epochs {seconds(whole)} went by until the first batch came{each(part)}.{why}",
        whole,
        shuffle or part.where,
        [*_one_iterator(case), Fix(advice, equivalence="semantic")],
        confidence="high" if shuffle is not None else "medium",
    )


def _one_iterator(case: Case) -> list[Fix]:
    """For what the cure takes on."""
    if queries.step_kind(case) != "fit":
        return []
    return [Fix("Use one iterator for all epochs.", lever="one-iterator", equivalence="semantic")]


def _shuffle(case: Case) -> Where | None:
    stages = [stage for pipeline in case.pipelines for stage in pipeline.stages if "Shuffle" in stage.name]
    return next((stage.where for stage in stages if stage.where is not None and not stage.detail.by_keras), None)


def lines(case: Case) -> Iterator[Finding]:
    """Work of the program's own loop. What it spends inside of TensorFlow there (a policy that plays, a model that
    predicts) is part of the training, and other causes say whether it is slow."""
    found = [line for line in lines_between_epochs(case) if line.name not in (*NUMERIC, *LIBRARIES)]
    whole = sum(line.seconds for line in found)
    if found:
        yield from of_run(
            "between-epochs",
            case,
            f"The program worked for {seconds(whole)} between epochs, {most_of(found[0].seconds, whole)} at "
            f"{spot(found[0].where)}.",
            whole,
            found[0].where,
            [
                *([IN_BACKGROUND] if draw_figures(found) else []),
                Fix("Do this every few epochs, after training, or in a process of its own.", equivalence="semantic"),
            ],
            confidence="medium",
        )


CAUSE = Cause(group="run", in_run={"iterators": iterators, "lines": lines}, cures=("one-iterator",))
