"""`model.predict` is called in a loop on small inputs, and its set-up is paid each time.

## What it is
`predict` is made for one large data set: it builds a data pipeline, callbacks and a progress bar, splits
the input into batches and collects the results. In a loop over single inputs all of that is done per call.

## Why it costs
The set-up takes milliseconds, the model often less. On one machine a small model took 130,430 µs per
`predict` call in a loop, 3087 µs per direct call `model(x)`, and 597 µs through a `tf.function`.

## How it looks
```python
for request in requests:
    scores = model.predict(request[np.newaxis], verbose=0)[0]
    answer(scores)
```

## The cure
When all inputs are known, one call for all of them:
```python
scores = model.predict(np.stack(requests), batch_size=256)
```
When they come one by one, call the model itself, traced once:
```python
forward = tf.function(lambda values: model(values, training=False))
for request in requests:
    answer(forward(tf.constant(request[np.newaxis]))[0].numpy())
```
`training=False` matters: a bare `model(x)` leaves the choice to the default, and `predict` always uses
False. `model.predict_on_batch` skips most of the set-up as well. For serving, `flatout optimize` compares
more routes.
- `direct-predict`: the same model on the same rows, without the set-up of a whole `predict`. Calling it for many
  rows at once is an edit of the source: reassociated, as the batch size chooses the kernels.

## When it is not worth it
When the loop runs a few times, or over large arrays: the set-up is then a small part of each call.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.case import Case, Finding, Fix
from flatout.causes import reading

GROUP = "graph"
LEVERS = ("direct-predict",)

CALLS = 8


def in_run(case: Case) -> Iterator[Finding]:
    if case.steps is None:
        return
    for item in case.evidence_of("keras-call"):
        calls, batches = int(item.data["calls"]), int(item.data["batches"])
        if item.value != "predict" or calls < CALLS or batches > 2 * calls:
            continue
        per_call = float(item.data["ms"]) / calls
        often = calls / max(case.steps.count, 1)
        if reading.step_kind(case) == "predict":
            cost = reading.step_ms(case) - reading.part_ms(case, "compute")
        else:
            # Within another step: a call of the model itself would do the same in the time that is computing.
            cost = per_call * often * 0.9
        yield from reading.finding(
            "predict-in-loop",
            case,
            f"model.predict is called {calls} times for {batches} batches; "
            "each call sets up a dataset, an iterator and callbacks.",
            cost_ms=cost,
            where=item.where,
            evidence=[reading.number("predict", per_call, "ms", "per call", "hook")],
            fixes=[
                Fix(
                    "Call the model through a tf.function: f = tf.function(model); f(x).",
                    equivalence="reassociated",
                ),
                Fix("Or predict once, on all samples together.", equivalence="reassociated"),
            ],
            estimate="the step less its computing"
            if reading.step_kind(case) == "predict"
            else "an estimate: 90 % of the calls",
        )
