"""Metrics are computed with numpy or scikit-learn on predictions, while training waits.

## What it is
After each epoch the program predicts a set of samples, takes the answers to the host and computes scores of them there:
`roc_auc_score`, a confusion matrix, a loop over samples.

## Why it costs
The prediction is a second validation, in one thread, with `predict`'s own start each time. The scores themselves are
computed by one core, and sorting a million answers takes longer than the device took to give them.

## How it looks
```python
class Auc(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(roc_auc_score(self.labels, self.model.predict(self.samples)))
```

## The cure
```python
model.compile("adam", "binary_crossentropy", metrics=[keras.metrics.AUC()])
model.fit(train, validation_data=(samples, labels))
```
`keras.metrics` count while the graph runs and give the same figure but for the approximation that some document. What
has no such form can be computed every few epochs, or after training, from saved weights.

## When it is not worth it
When the score decides what is trained next, and a run of full length has long epochs.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.causes._keras_calls import predicts_row_by_row
from flatout.causes._run_parts import (
    NUMERIC,
    each,
    lines_between_epochs,
    mostly,
    of_run,
    predicts_and_scores,
    seconds,
    spot,
)
from flatout.causes._spec import Cause
from flatout.model.case import Case, Finding, Fix

ADVICE = "Use a metric of keras.metrics in compile(metrics=…), or compute this every few epochs on fewer samples."


def in_run(case: Case) -> Iterator[Finding]:
    if case.run is None:
        return
    for part in case.run.of("callback"):
        if predicts_and_scores(part) and not predicts_row_by_row(case, part):
            yield from of_run(
                "host-metrics",
                case,
                f"`{part.name}` predicts and scores on the host: {seconds(part.seconds)}{each(part)}.{mostly(part)}",
                part.seconds,
                part.where,
                [Fix(ADVICE, equivalence="semantic")],
            )
    lines = [line for line in lines_between_epochs(case) if line.name in NUMERIC]
    whole = sum(line.seconds for line in lines)
    if lines:
        yield from of_run(
            "host-metrics",
            case,
            f"{seconds(whole)} went to {lines[0].name} on the host between epochs, at {spot(lines[0].where)}.",
            whole,
            lines[0].where,
            [Fix(ADVICE, equivalence="semantic")],
            confidence="medium",
        )


CAUSE = Cause(group="run", in_run=in_run)
