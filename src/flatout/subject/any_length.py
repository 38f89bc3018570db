"""The model with its lengths left open, beside the form with those of the data, which converters are given.

An artefact is fast for the lengths that were measured. Samples of other lengths are answered by this SavedModel, so
that it takes all that the original took.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flatout.subject.original import Original
from flatout.subject.subject import Array, Subject, plain_array

FOLDER = "any_length"


def has_open_lengths(subject: Subject) -> bool:
    return any(None in lengths(subject, one.shape) for one in subject.inputs)


def lengths(subject: Subject, shape: Sequence[int | None]) -> Sequence[int | None]:
    """Of one sample."""
    return shape if subject.batching == "none" else shape[1:]


def save(subject: Subject, original: Original) -> None:
    """Write it where the model leaves lengths open; where it cannot be traced so, nothing is written."""
    import tensorflow as tf

    if not has_open_lengths(subject):
        return
    lead = [] if subject.batching == "none" else [None if subject.batching == "dynamic" else subject.batches[0]]
    specifications = [
        tf.TensorSpec([*lead, *lengths(subject, one.shape)], tf.string if one.dtype == "str" else one.dtype, one.name)
        for one in subject.inputs
    ]
    module = tf.Module()
    module.serve = tf.function(lambda *inputs: tuple(original.call(inputs)), autograph=False)
    module.kept, module.owner = list(original.variables), original.owner
    try:
        module.serve.get_concrete_function(*specifications)
        tf.saved_model.save(module, str(subject.directory / FOLDER))
    except Exception:  # not essential: the artefact says which lengths it takes
        shutil.rmtree(subject.directory / FOLDER, ignore_errors=True)


def answers(directory: Path, arrays: Sequence[Array]) -> list[Array] | None:
    """Of the model with open lengths; None where it refuses the samples itself."""
    import tensorflow as tf

    model: Any = tf.saved_model.load(str(directory))
    try:
        return [plain_array(one) for one in model.serve(*(tf.constant(array) for array in arrays))]
    except (ValueError, TypeError, tf.errors.OpError):
        return None


def other_lengths(subject: Subject, arrays: Sequence[Array]) -> list[list[Array]]:
    """The same samples cut to half of each open length, and with their end repeated."""
    skipped = 0 if subject.batching == "none" else 1
    made = []
    for longer in (False, True):
        changed = []
        for one, array in zip(subject.inputs, arrays, strict=True):
            for axis, length in enumerate(lengths(subject, one.shape), skipped):
                if length is None:
                    now = array.shape[axis]
                    rows = np.minimum(np.arange(now + 1 if longer else max(1, now // 2)), now - 1)
                    array = np.take(array, rows, axis)
            changed.append(np.ascontiguousarray(array))
        made.append(changed)
    return made
