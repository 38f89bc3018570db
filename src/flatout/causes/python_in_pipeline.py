"""The pipeline calls back into Python for every element, one call at a time under the interpreter lock.

## What it is
`Dataset.from_generator`, `tf.py_function` and `tf.numpy_function` leave TensorFlow's graph and run Python
code in the training process.

## Why it costs
Every element pays for a call into the interpreter and for converting its values to tensors and back, and
all such calls share one interpreter lock with the training loop itself. On one machine `from_generator`
took 310 µs per element where `from_tensor_slices` took 2.2 µs. TensorFlow never makes such a map parallel
by itself, and asking for it with `num_parallel_calls` helps only while the Python code has let go of the
lock (file access, many numpy routines).

## How it looks
```python
def rows():
    for sample, label in zip(samples, labels):
        yield sample / 255.0, label

dataset = tf.data.Dataset.from_generator(
    rows, output_signature=(tf.TensorSpec((28, 28), tf.float32), tf.TensorSpec((), tf.int64))
).batch(64)
```

## The cure
Say the same with TensorFlow operations, so that the elements never enter Python:
```python
dataset = (
    tf.data.Dataset.from_tensor_slices((samples, labels))
    .batch(64)
    .map(lambda sample, label: (tf.cast(sample, tf.float32) / 255.0, label))
)
```
Where Python is needed (a foreign file format, a library), let one call do a whole batch, do it once and
keep the result (`cache`, or record shards with `flatout data`), or move it into other processes.
- `cache`: exact, if the Python code gives the same values in every epoch.
- `parallel-map`: semantic for a function with state of its own: the order of its calls changes.
- `vectorize-map` needs a function that accepts a batch.

## When it is not worth it
When elements are large and few: 300 µs beside a batch that takes 50 ms to compute is nothing, and
TensorFlow's own prefetch already lets the generator run while the step computes.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.case import Case, Finding, Fix
from flatout.causes import blocking_map, legacy_pipeline, reading

GROUP = "input"
LEVERS = ("cache", "parallel-map", "vectorize-map")


def in_run(case: Case) -> Iterator[Finding]:
    hot = reading.hot_stage(case)
    if hot is None or any(blocking_map.in_run(case)) or any(legacy_pipeline.in_run(case)):
        return
    python = [stage for stage in hot.pipeline.stages if stage.stateful == "python"]
    stage = max(python, key=lambda item: item.share or 0.0, default=None)
    if stage is None or (stage.share or 0.0) < 0.3:
        return
    what = "a Python generator" if stage.name == "FlatMap" else f"the Python function {stage.function or ''}".strip()
    if stage.detail.get("by") == "keras":
        what = "a Python data source given to Keras (a generator, or a PyDataset)"
    yield from reading.finding(
        "python-in-pipeline",
        case,
        f"The step waits for {what}, which runs under the interpreter's lock, one element at a time.",
        cost_ms=hot.wait_ms,
        where=stage.where,
        evidence=reading.wait_evidence(case, hot),
        fixes=[
            Fix("Write the stage with TensorFlow ops, or prepare the data once and store it as record shards."),
            Fix("Where it must stay Python, cache its result.", lever="cache"),
        ],
        estimate="the wait that the trace shows",
    )
