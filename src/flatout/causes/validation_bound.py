"""Validation takes as long as training, or longer.

## What it is
After each epoch the model is evaluated on the validation data, in `fit` or in a loop of the program, and training
waits.

## Why it costs
Validation has no backward pass, so on as many samples it takes about a third of the time. It takes as long as training
where its batches are small, where its step runs eagerly or is not traced, where its input is prepared anew, or where
it is done far too often for the length of an epoch.

## How it looks
```python
model.fit(train, validation_data=validation.batch(1), epochs=50)
```

## The cure
```python
model.fit(train, validation_data=validation.batch(512).cache(), epochs=50, validation_freq=5)
```
A larger batch gives the same metrics, as nothing is learned in validation: for arrays the lever `validation-batch`
makes it. `validation_freq` and `validation_steps` make less of it: then there are fewer numbers to look at, so `tune`
tries the lever `validation-freq` only where it is named (`--lever validation-freq`). A loop of the program's own
belongs in a `tf.function`.

## When it is not worth it
When validation is the purpose: early stopping on a small training set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from flatout.causes._run_parts import busiest, each, is_beside_steps, of_run, seconds
from flatout.causes._spec import Cause
from flatout.model.case import Case, Finding, Fix, RunPart

OF_TRAINING = 0.5
"""Share of the time of the training steps from which on validation is out of proportion."""


def in_run(case: Case) -> Iterator[Finding]:
    if case.run is None:
        return
    parts = [part for part in case.run.of("validation") if _is_repeated(case, part)]
    steps = case.run.seconds_of("steps")
    whole = sum(part.seconds for part in parts)
    if not parts or not steps or whole < OF_TRAINING * steps:
        return
    part = parts[0]
    where = part.where or busiest(part)
    yield from of_run(
        "validation-bound",
        case,
        f"Validation took {seconds(whole)}{each(part)}, {whole / steps:.1f} times as long as the training steps.",
        whole,
        where,
        _fixes(part),
    )


def _is_repeated(case: Case, part: RunPart) -> bool:
    """Part of the training: an evaluation at the end is none."""
    if part.name == "loop":
        return any(is_beside_steps(case, one) for one in (part, *part.lines()))
    return part.name == "validation of fit" or part.count > 1


def _fixes(part: RunPart) -> list[Fix]:
    if part.name == "loop":
        return [
            Fix("Let the validation loop call a tf.function with large batches.", equivalence="reassociated"),
            Fix("Validate every few epochs.", equivalence="semantic"),
        ]
    larger = Fix("Validate in larger batches.", lever="validation-batch", equivalence="reassociated")
    less_often = Fix(
        "Validate every few epochs: fit(validation_freq=5).", lever="validation-freq", equivalence="semantic"
    )
    return [
        *([larger] if part.name == "validation of fit" else []),
        Fix("Give validation_data in batches as large as memory allows, cached: the metrics stay the same.",
            equivalence="reassociated"),
        less_often if part.name == "validation of fit" else replace(less_often, lever=None),
    ]  # fmt: skip


CAUSE = Cause(group="run", in_run=in_run, cures=("validation-batch", "validation-freq"))
