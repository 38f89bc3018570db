"""Writes the subject's directory: SavedModels whose weights are stored once, samples, and the original's answers."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
import time
from typing import Any

import numpy as np

from flatout.measure.agreement import difference, relative_error
from flatout.model.errors import ModelUnusable
from flatout.subject import any_length, graph, graph_digest
from flatout.subject.original import Original
from flatout.subject.subject import FEW_ELEMENTS, Array, Subject, Tensor, in_batches, plain_array, write_arrays

ANSWER_SECONDS = 20.0
"""Time limit for the original's answers to one set of samples; samples not reached by then are left out."""
MIN_ANSWERS = 64
LONGEST_SECONDS = 60.0
"""After this time even fewer than `MIN_ANSWERS` are enough."""
TRIAL_SECONDS = 10.0
"""What one further batch of answers may take: of slow models it has fewer samples."""
UNROLLED_ERROR = 1e-4
LONGEST_UNROLLED = 160
"""Longest sequence that is unrolled: longer ones become graphs that converters cannot handle."""

Parts = dict[str, tuple[list[Array], list[Array]]]


def write(subject: Subject, original: Original, parts: Parts, notes: list[str], *, needs_rows: bool = True) -> Subject:
    """`needs_rows`: a model whose outputs have no row for each sample is refused."""
    import tensorflow as tf

    batch = None if subject.batching == "dynamic" else subject.batches[0]
    specifications = graph.specifications(subject, batch)
    serve = tf.function(lambda *inputs: tuple(original.call(inputs)), autograph=False)
    concrete = serve.get_concrete_function(*specifications)
    subject = dataclasses.replace(subject, outputs=_outputs(concrete, original, needs_rows))
    _save(subject, original, serve, specifications, "saved_model")
    subject = _with_statistics(subject, concrete)
    sample_ms = _write_parts(subject, serve, parts, notes, needs_rows)
    length = max((one.sample[0] for one in subject.inputs if one.sample), default=0)
    subject = dataclasses.replace(subject, sample_ms=sample_ms)
    if subject.recurrent and length <= LONGEST_UNROLLED:
        subject = _with_unrolled(subject, original, specifications)
    subject = dataclasses.replace(subject, float16_error=_float16_error(subject))
    any_length.save(subject, original)
    subject.write()
    return subject


def _outputs(concrete: Any, original: Original, have_rows: bool) -> tuple[Tensor, ...]:
    """`have_rows`: whether that is required of outputs whose shape the graph does not tell."""
    unknown = (None,) if have_rows else ()
    flat = list(concrete.outputs)
    names = original.output_names(len(flat))
    return tuple(
        Tensor(str(name), one.dtype.name, tuple(one.shape.as_list()) if one.shape.rank is not None else unknown)
        for name, one in zip(names, flat, strict=True)
    )


def _save(subject: Subject, original: Original, serve: Any, specifications: list[Any], flavour: str) -> None:
    """Save the model with `serve`, for flatout, and with a signature in the model's own names, for TF Serving."""
    import tensorflow as tf

    names = [one.name for one in subject.outputs]

    signature = tf.function(lambda *inputs: dict(zip(names, serve(*inputs), strict=True)), autograph=False)
    module = tf.Module()
    module.serve = serve
    module.kept = list(original.variables)
    directory = str(subject.directory / flavour)
    default = signature.get_concrete_function(*specifications)
    try:
        tf.saved_model.save(module, directory, signatures={"serving_default": default})
    except AssertionError:  # a table or another resource that is not a variable
        module.owner = original.owner
        tf.saved_model.save(module, directory, signatures={"serving_default": default})


def _with_statistics(subject: Subject, concrete: Any) -> Subject:
    frozen = graph.frozen_from(concrete)
    definition = frozen.graph.as_graph_def()
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    ops: dict[str, int] = {}
    elements = size = 0
    seen: set[bytes] = set()
    for node in nodes:
        ops[node.op] = ops.get(node.op, 0) + 1
        if node.op == "Const":
            value = node.attr["value"].tensor
            count = int(np.prod([dimension.size for dimension in value.tensor_shape.dim], dtype=np.int64))
            digest = hashlib.sha256(value.SerializeToString()).digest()
            if (
                count > FEW_ELEMENTS and digest not in seen
            ):  # a weight that is read twice appears twice in the frozen graph
                seen.add(digest)
                elements += count
                size += len(value.tensor_content) or count * 4
    digests = {"saved_model": graph_digest.digest(frozen, len(subject.inputs))}
    return dataclasses.replace(subject, ops=ops, parameters=elements, parameter_bytes=size, digests=digests)


def _with_unrolled(subject: Subject, original: Original, specifications: list[Any]) -> Subject:
    import tensorflow as tf

    with original.unrolled() as any_layer:
        if not any_layer:
            return subject
        serve = tf.function(lambda *inputs: tuple(original.call(inputs)), autograph=False)
        try:
            _save(subject, original, serve, specifications, "unrolled")
            frozen = graph.frozen_from(serve.get_concrete_function(*specifications))
        except Exception:  # not essential: the plain SavedModel exists
            return subject
    if not _answers_alike(subject, "unrolled"):
        shutil.rmtree(subject.directory / "unrolled")
        return subject
    digests = {**subject.digests, "unrolled": graph_digest.digest(frozen, len(subject.inputs))}
    return dataclasses.replace(subject, flavours=("saved_model", "unrolled"), digests=digests)


def _answers_alike(subject: Subject, flavour: str) -> bool:
    """Whether a form of the model answers as the original: unrolled, Keras treats some masks in another way."""
    import tensorflow as tf

    copy, batch = graph.load(subject, flavour), _answer_batch(subject)
    feed = next(in_batches(subject.samples("held_out"), batch))
    given = [plain_array(output) for output in copy.serve(*(tf.constant(array) for array in feed))]
    answers = subject.answers("held_out")
    if batch == 0 or not has_row_per_sample(subject):
        return not difference([array[0] for array in answers], given, UNROLLED_ERROR)
    count = min(batch, len(answers[0]))
    return not difference([array[:count] for array in answers], [array[:count] for array in given], UNROLLED_ERROR)


def _write_parts(subject: Subject, serve: Any, parts: Parts, notes: list[str], needs_rows: bool) -> float:
    """Write samples and answers. Returns the original's milliseconds per held-out sample."""
    sample_ms = 0.0
    for name, (arrays, _) in parts.items():
        began = time.monotonic()
        answers = _answers(subject, serve, arrays, needs_rows)
        count = len(answers[0])
        if count < len(arrays[0]):
            notes.append(
                f"The original is slow: only {count} of {len(arrays[0])} {name.replace('_', '-')} samples are used."
            )
        write_arrays(subject.directory / f"{name}.npz", "in", [array[:count] for array in arrays])
        write_arrays(subject.directory / f"{name}_out.npz", "out", answers)
        if name == "held_out":
            sample_ms = 1e3 * (time.monotonic() - began) / max(count, 1)
            subject = dataclasses.replace(subject, sample_ms=sample_ms)
            _note_unstable_outputs(subject, serve, arrays, answers, notes)
    return sample_ms


def _answers(subject: Subject, serve: Any, arrays: list[Array], needs_rows: bool) -> list[Array]:
    import tensorflow as tf

    batch = _answer_batch(subject)
    pieces: list[list[Array]] = []
    done, began = 0, time.monotonic()
    for feed in in_batches(arrays, batch):
        pieces.append([plain_array(output) for output in serve(*(tf.constant(array) for array in feed))])
        if needs_rows and batch:
            _require_rows(subject, pieces[-1], batch)
        done += max(batch, 1)
        taken = time.monotonic() - began
        if taken > LONGEST_SECONDS or (taken > ANSWER_SECONDS and done >= MIN_ANSWERS):
            break
    count = min(done, len(arrays[0]))
    if batch == 0 or not has_row_per_sample(subject):
        return [np.stack(column) for column in zip(*pieces, strict=True)]
    return [np.concatenate(column)[:count] for column in zip(*pieces, strict=True)]


def _float16_error(subject: Subject) -> float:
    """Measured on the saved copy, so that the user's model is not changed."""
    import tensorflow as tf

    copy = graph.load(subject)
    floats = [variable for variable in copy.kept if variable.dtype == tf.float32]
    for variable in floats:
        variable.assign(tf.cast(tf.cast(variable, tf.float16), tf.float32))
    feed = [_round_to_float16(array) for array in next(in_batches(subject.samples("held_out"), _answer_batch(subject)))]
    rounded = [plain_array(output) for output in copy.serve(*(tf.constant(array) for array in feed))]
    answers = subject.answers("held_out")
    if subject.batches == (0,) or not has_row_per_sample(subject):
        answers = [array[0] for array in answers]
    error = relative_error(answers, rounded)
    return error if np.isfinite(error) else 0.0


def _round_to_float16(array: Array) -> Array:
    if array.dtype != np.float32:
        return array
    largest = float(np.finfo(np.float16).max)
    return np.clip(array, -largest, largest).astype(np.float16).astype(np.float32)


def has_row_per_sample(subject: Subject) -> bool:
    """Whether each output has a row for each sample."""
    lead = None if subject.batching == "dynamic" else subject.batches[0]
    return all(one.shape and one.shape[0] in (lead, None) for one in subject.outputs)


def _require_rows(subject: Subject, answers: list[Array], batch: int) -> None:
    """Answers are compared sample by sample, so each output of the model needs a row for each."""
    lead = None if subject.batching == "dynamic" else batch
    for one, array in zip(subject.outputs, answers, strict=True):
        if not one.shape or one.shape[0] not in (lead, None) or array.shape[:1] != (batch,):
            shape = ", ".join("any" if length is None else str(length) for length in one.shape or array.shape)
            raise ModelUnusable(
                f"Output {one.name!r} of the model has the shape ({shape}) and no row for each sample: it gave "
                f"{array.shape} for {batch} of them. Such models are not served: leave this output out, by another "
                "--signature of a SavedModel or a function that builds the model without it."
            )


def _answer_batch(subject: Subject) -> int:
    """Large batches where each output has a row per sample, so that the answers can be separated."""
    if subject.batching != "dynamic" or not has_row_per_sample(subject):
        return subject.batches[0]
    return max(2, min(32, int(1e3 * TRIAL_SECONDS / subject.sample_ms))) if subject.sample_ms else 32


def _note_unstable_outputs(
    subject: Subject, serve: Any, arrays: list[Array], answers: list[Array], notes: list[str]
) -> None:
    """Add notes about outputs that are not finite or differ from call to call."""
    import tensorflow as tf

    feed = next(in_batches(arrays, _answer_batch(subject)))
    again = [plain_array(output) for output in serve(*(tf.constant(array) for array in feed))]
    for one, first, second in zip(subject.outputs, answers, again, strict=True):
        if first.dtype.kind != "f":
            continue
        if not np.isfinite(first).all():
            notes.append(f"The original model itself returns NaN or infinity in output {one.name!r}.")
        same = first[: len(second)] if subject.batches[0] or has_row_per_sample(subject) else first[0]
        second = second[: len(same)] if np.ndim(same) else second
        if not np.allclose(same, second, rtol=1e-3, atol=1e-6, equal_nan=True):
            notes.append(
                f"Output {one.name!r} of the original differs from call to call (random layers at inference?): "
                "agreement with it means little."
            )
