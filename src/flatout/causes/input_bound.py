"""The step waits for its input: the pipeline delivers elements more slowly than the model consumes them.

## What it is
The next batch is not ready when the step asks for it. The processor, or the accelerator, is idle until
it is. flatout measures that wait for every element and names the stage of the pipeline that takes most of
the time.

## Why it costs
Input and compute run side by side, so a step takes as long as the slower of the two. While the input is the
slower one, nothing that is done to the model makes the program faster. TensorFlow already turns a stateless
`map` into a parallel one and adds a prefetch after the last stage by itself: a pipeline that still lags has
a stage that TensorFlow may not touch, or more work per element than the machine has cores for.

## How it looks
```python
def load(path, label):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    image = tf.image.resize(image, (224, 224))          # the same work again in every epoch
    return tf.image.random_flip_left_right(image), label  # a random op keeps the whole map serial

dataset = tf.data.Dataset.from_tensor_slices((paths, labels)).map(load).batch(64)
```

## The cure
Find the hot stage first (`flatout show --view input`), then cure that stage.
```python
dataset = (
    tf.data.Dataset.from_tensor_slices((paths, labels))
    .map(decode_and_resize)   # stateless: TensorFlow runs it in parallel
    .cache()                  # decoded once
    .batch(64)
    .map(random_flip, num_parallel_calls=tf.data.AUTOTUNE)  # one call per batch, not per image
)
```
- `cache`: exact, if the stages before it are deterministic and the result fits in memory or on disk.
- `vectorize-map`: exact for elementwise functions. `threadpool`, `prefetch`: exact.
- `parallel-map`: semantic where the function draws random numbers, because the order of the draws changes.
- `direct-epochs`: reassociated; where all rows are one batch, `fit` begins a pipeline for each step.
- `free-input` is no cure but a bound: the step time with the input at no cost. It shows what a cure could
  bring.

## When it is not worth it
When the wait is a small part of the step, or when `free-input` shows that compute is nearly as slow as the
input: then the step stays about as long and only the name of the bottleneck changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.model.evidence.program import KerasCall

OF_KERAS = 0.15
"""The same for a pipeline that Keras makes of arrays: a program can do little about it."""


def in_run(case: Case) -> Iterator[Finding]:
    wait = queries.input_ms(case)
    hot = queries.hot_stage(case)
    made_by_keras = hot is not None and all(stage.detail.by_keras for stage in hot.pipeline.stages)
    if queries.share(case, wait) < (OF_KERAS if made_by_keras else queries.INPUT_MATTERS):
        return
    where = queries.users_where(hot) if hot is not None else (case.steps.where if case.steps else None)
    stage = f"its slowest stage is {hot.stage.name.lower()}" if hot is not None else "no stage could be identified"
    evidence = [queries.number("input-wait", wait, "ms", "a step waits for its input", "trace")]
    yield from queries.finding(
        "input-bound",
        case,
        f"The step waits for its input pipeline; {stage}.",
        cost_ms=wait,
        where=where,
        evidence=queries.wait_evidence(case, hot) if hot is not None else evidence,
        fixes=[_fix(case, made_by_keras)],
        estimate="the wait that the trace shows",
    )


def _fix(case: Case, made_by_keras: bool) -> Fix:
    if made_by_keras and any(item.is_one_batch_again for item in case.evidence_of(KerasCall)):
        text = "Call the training step once an epoch: all rows are one batch, and fit begins a pipeline for each epoch."
        return Fix(text, lever="direct-epochs", equivalence="reassociated")
    return Fix("Make the slowest stage cheaper, run it in parallel, or keep its result.", lever="prefetch")


CAUSE = Cause(
    group="input",
    cures=("cache", "parallel-map", "vectorize-map", "threadpool", "prefetch", "direct-epochs", "free-input"),
    explains=("gpu-idle",),
    in_run=in_run,
)
