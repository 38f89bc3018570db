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

import ast
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.model.evidence.program import LegacyInput
from flatout.source.analysis import datasets, programs
from flatout.source.analysis.image_iterators import first_to_train_on
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import keyword, last_name, takes_unknown
from flatout.source.repairs import RenameMethod, Repair


def in_run(case: Case) -> Iterator[Finding]:
    used = case.evidence_of(LegacyInput)
    if not used:
        return
    wait, crowded = queries.part_ms(case, "input"), queries.crowded_ms(case)
    cost = wait + crowded
    if case.steps is not None and queries.share(case, cost) < queries.INPUT_MATTERS:
        return
    yield from queries.finding(
        "legacy-pipeline",
        case,
        f"The step waits for {used[0].name}, which prepares each batch in Python on one core"
        + (", and for that core." if crowded > wait else "."),
        cost_ms=cost if case.steps is not None else None,
        where=used[0].where,
        evidence=[
            queries.number("input-wait", wait, "ms", "a step waits for its input", "trace"),
            *([queries.number("crowded", crowded, "ms", "of computing that waits for a core")] if crowded else []),
        ],
        fixes=[
            Fix(
                "Read with keras.utils.image_dataset_from_directory or tf.data, and augment with Keras layers.",
                equivalence="semantic",
            )
        ],
        estimate="the wait that the trace shows, and what the generator's core would add to computing",
    )


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

_GENERATORS = {"fit_generator": "fit", "evaluate_generator": "evaluate", "predict_generator": "predict"}
_MOVED = (
    "workers",
    "use_multiprocessing",
    "max_queue_size",
    "pickle_safe",
    "nb_epoch",
    "samples_per_epoch",
    "max_q_size",
)
"""Arguments that the new methods do not take any more."""
_OF_KERAS = (
    *_MOVED,
    "steps_per_epoch",
    "epochs",
    "validation_data",
    "validation_steps",
    "callbacks",
    "verbose",
    "steps",
)
_QUEUES = (
    "string_input_producer",
    "input_producer",
    "range_input_producer",
    "slice_input_producer",
    "shuffle_batch",
    "shuffle_batch_join",
    "batch_join",
    "start_queue_runners",
    "QueueRunner",
)


@pattern("fit-generator", calls=tuple(_GENERATORS))
def _fit_generator(call: ast.Call, site: Site) -> Iterator[Match]:
    """`model.fit_generator(…)`"""
    old = last_name(call.func)
    if not isinstance(call.func, ast.Attribute) or site.module.functions.get(old) or not _of_keras(call, site):
        return
    new = _GENERATORS[old]
    others = [other for name in _GENERATORS for other, _ in site.module.calls_by_name.get(name, ())]
    if min(others, key=lambda other: (other.lineno, other.col_offset)) is not call:
        return  # reported once per file
    if site.module.names.imports_any("tf_keras") or _of_private_keras(site) or site.module.version < (2, 16):
        return  # still there
    # By position, the second argument was the number of steps, and is now the labels.
    moved = len(call.args) != 1 or takes_unknown(call) or any(keyword(call, name) is not None for name in _MOVED)
    yield Match(
        call,
        f"{old} is gone in Keras 3, which TensorFlow has from 2.16 on; {new} takes generators too, and datasets.",
        f"Call {new}; for speed, read the data with tf.data.",
        repair=None
        if moved
        else Repair(RenameMethod(new), safe=site.module.is_pinned, assumes="TensorFlow 2.1 or later"),
        report_at=call.func,
        confidence="high" if site.module.is_pinned else "medium",
    )


def _of_private_keras(site: Site) -> bool:
    """Whether all Keras that a file imports is `tensorflow.python.keras`, which still has the old methods."""
    names = site.module.names
    private = ("tensorflow.python.keras",)
    return (
        names.imports_from(*private)
        and not names.imports_beyond(("keras",), ())
        and not names.imports_from("tensorflow.keras", "tensorflow.compat.v1.keras")
    )


def _of_keras(call: ast.Call, site: Site) -> bool:
    """Whether the model is one of Keras, judged by an argument of Keras or by how the model was made.

    Other libraries have a fit_generator of their own.
    """
    model = call.func.value if isinstance(call.func, ast.Attribute) else None
    if isinstance(model, ast.Name):
        if model.id == "self":
            return False
        bound = datasets.binding(model.id, site)
        if bound is not None and isinstance(bound.value, ast.Call) and site.dotted(bound.value.func):
            return site.dotted(bound.value.func).startswith("keras.")
    return any(item.arg in _OF_KERAS for item in call.keywords)


@pattern("image-generator", calls=("ImageDataGenerator",), often_in=programs.may_use_tensorflow)
def _image_generator(call: ast.Call, site: Site) -> Iterator[Match]:
    """`ImageDataGenerator(…)`"""
    name = site.dotted(call.func)
    if name.startswith(("keras.", "keras_preprocessing.")) and "ImageDataGenerator" in name:
        others = [other for other, _ in site.module.calls_by_name["ImageDataGenerator"]]
        first = min(others, key=lambda other: (other.lineno, other.col_offset))
        trains_on = first_to_train_on(site.module, others)
        if (trains_on or first) is not call:
            return  # reported once per file
        yield Match(
            call,
            "ImageDataGenerator decodes and augments in Python, on one core, and none of tf.data's rewrites apply.",
            "Use keras.utils.image_dataset_from_directory, and Random… layers or tf.image for augmentation.",
            "semantic",
            report_at=call.func,
            confidence="medium" if _feeds_training(site, others) and trains_on is not None else "low",
        )


def _feeds_training(site: Site, made: list[ast.Call]) -> bool:
    """Whether a model is trained with it, on files or with transformations that Python computes for each image."""
    calls = site.module.calls_by_name
    warps = any(keyword(call, name) is not None for call in made for name in _WARPS)
    fits = [*calls.get("fit", ()), *calls.get("fit_generator", ())]
    if not any(not _is_generator(call, where) for call, where in fits):
        return warps and "flow_from_directory" in calls  # another file trains with it
    return warps or "flow_from_directory" in calls


def _is_generator(call: ast.Call, site: Site) -> bool:
    """`images.fit(x)` of an ImageDataGenerator, which trains nothing."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    bound = datasets.binding(owner.id, site) if isinstance(owner, ast.Name) else None
    made = bound.value if bound is not None else None
    return isinstance(made, ast.Call) and last_name(made.func) == "ImageDataGenerator"


_WARPS = (
    "rotation_range",
    "width_shift_range",
    "height_shift_range",
    "shear_range",
    "zoom_range",
    "preprocessing_function",
)


@pattern("queue", calls=_QUEUES)
def _queue(call: ast.Call, site: Site) -> Iterator[Match]:
    """`tf.train.string_input_producer(…)`"""
    if site.dotted(call.func).startswith("tensorflow.train."):
        yield Match(
            call,
            f"tf.train.{last_name(call.func)} belongs to the input queues of TensorFlow 1.",
            "Read the data with tf.data.",
            "semantic",
            report_at=call.func,
        )


@pattern("sequence-class", nodes=(ast.ClassDef,), words=("Sequence", "PyDataset"), default=False)
def _sequence_class(node: ast.ClassDef, site: Site) -> Iterator[Match]:
    """A data source in Python: `class Photos(keras.utils.Sequence)`."""
    for base in node.bases:
        if site.dotted(base) in ("keras.utils.Sequence", "keras.utils.PyDataset", "keras.utils.data_utils.Sequence"):
            yield Match(
                node,
                "Batches are prepared in Python; by default that happens in one thread.",
                "Use tf.data, or give it workers and use_multiprocessing.",
                "semantic",
                report_at=base,
            )


CAUSE = Cause(
    group="api",
    explains=("input-bound", "step-overhead"),
    replaces=("python-in-pipeline",),
    in_run=in_run,
    patterns=(_fit_generator, _image_generator, _queue, _sequence_class),
)
