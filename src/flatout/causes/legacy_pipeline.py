"""The input comes from an interface that was superseded: queues, `fit_generator`, `ImageDataGenerator`.

## What it is
Queue runners and `string_input_producer` from TensorFlow 1, `fit_generator` (gone from Keras 3),
`ImageDataGenerator` and `Sequence` classes that prepare each batch in Python.

## Why it costs
`ImageDataGenerator` and hand-written sequences work in Python and NumPy, by default in a single thread:
decoding and augmentation compete with the training loop for the interpreter lock. None of TensorFlow's own
rewrites (parallel maps, fusion, tuned buffers) apply to them. Queue runners need a session, so that the
whole program stays in the old style.

## How it looks
```python
generator = tf.keras.preprocessing.image.ImageDataGenerator(rescale=1 / 255, horizontal_flip=True)
model.fit(generator.flow_from_directory("photos", target_size=(180, 180), batch_size=32))
```

## The cure
```python
dataset = keras.utils.image_dataset_from_directory("photos", image_size=(180, 180), batch_size=32)
augment = keras.Sequential([keras.layers.Rescaling(1 / 255), keras.layers.RandomFlip("horizontal")])
dataset = dataset.map(lambda images, labels: (augment(images, training=True), labels))
model.fit(dataset)
```
For a `Sequence` (today `keras.utils.PyDataset`) that must stay in Python, `workers=4,
use_multiprocessing=True` at least moves it into other processes.
- An edit of the source: **semantic**. Resizing uses another interpolation and random augmentation draws
  other numbers, so the images differ slightly; class indices follow the directory names in both.
- `prefetch` has nothing to add where Keras already runs the generator in a thread of its own.

## When it is not worth it
When the input is hidden behind the step: small images, a large model. When the program is about to be
retired.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.case import Case, Finding, Fix
from flatout.causes import reading

GROUP = "api"
LEVERS = ()


def in_run(case: Case) -> Iterator[Finding]:
    used = case.evidence_of("legacy-input")
    if not used:
        return
    cost = reading.part_ms(case, "input")
    if case.steps is not None and reading.share(case, cost) < reading.INPUT_MATTERS:
        return
    yield from reading.finding(
        "legacy-pipeline",
        case,
        f"The step waits for {used[0].value}, which prepares each batch in Python on one core.",
        cost_ms=cost if case.steps is not None else None,
        where=used[0].where,
        evidence=[reading.number("input-wait", cost, "ms", "a step waits for its input", "trace")],
        fixes=[
            Fix(
                "Read with keras.utils.image_dataset_from_directory or tf.data, and augment with Keras layers.",
                equivalence="semantic",
            )
        ],
        estimate="the wait that the trace shows",
    )
