"""Writes the stages of a model that was parted (`stages`): SavedModels, and the core as a subject of its own.

core/        a Subject: its inputs are what `before` makes of the samples
before/      a SavedModel: the inputs of the model → the inputs of the core, and what passes by it
after/       a SavedModel: results of the core, and what passed by it → outputs; only where it is needed
stages.json  which tensor goes where
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flatout.measure.agreement import agreement
from flatout.subject import numpy_steps, stages, writer
from flatout.subject.graph_function import GraphFunction
from flatout.subject.graph_parts import Parted, parted
from flatout.subject.original import Original
from flatout.subject.subject import Array, Subject, Tensor, in_batches, plain_array

CORE, BEFORE, AFTER, FILE = "core", "before", "after", "stages.json"
BATCH = 32
TRIED = (2, 5, 3, *[7] * 8)
"""Batches that show which tensors have a row for each sample, and which are always the same. Each has other samples, as
a number that two of them have in common may come from the data."""
SAME = 1 - 1e-6

Stage = Callable[[Sequence[Array]], list[Array]]


@dataclass(frozen=True)
class Layout:
    """How the stages are joined. The core takes the first results of `before`."""

    inputs: int
    """How many of them."""
    after: tuple[tuple[str, int], ...]
    """Where each input of `after` comes from: ("before", i) or ("core", i). Empty: there is no such stage."""
    outputs: tuple[tuple[str, int], ...]
    """Where each output of the model comes from: ("before", i), ("core", i) or ("after", i)."""


def with_stages(subject: Subject, notes: list[str]) -> Subject:
    """The subject with its preprocessing split off, where it has some."""
    texts = any(one.dtype in ("str", "string") for one in (*subject.inputs, *subject.outputs))
    if not texts and not any(name in stages.FOREIGN or name.startswith("LookupTable") for name in subject.ops):
        return subject
    try:
        reason = split(subject)
    except Exception as error:  # the whole model is still there
        reason = " ".join(str(error).split())[:200].rstrip(".")
    if reason:
        for name in (CORE, BEFORE, AFTER):
            shutil.rmtree(subject.directory / name, ignore_errors=True)
        notes.append(
            f"The preprocessing of the inputs could not be split off: {reason}. Other runtimes are given the whole "
            "model, and most cannot convert it."
        )
        return subject
    subject = dataclasses.replace(subject, split=True)
    subject.write()
    return subject


def split(subject: Subject) -> str:
    """Write the stages into the subject's directory. Returns why that was not done; empty if it was."""
    if subject.batching != "dynamic":
        return "the model has no open batch dimension"
    parts = parted(subject)
    if parts is None:
        return "no numeric core can be parted from it"
    samples = {part: subject.samples(part) for part in ("calibration", "held_out")}
    candidates = parts.cut.into_core
    trial = _stage(parts.function(parts.inputs, candidates))
    tried = [trial(batch) for batch in _trials(samples["held_out"])]
    kinds = {name: _derived(made) for name, made in zip(candidates, zip(*tried, strict=True), strict=True)}
    if unknown := [name for name, kind in kinds.items() if kind is None]:
        return f"what {unknown[0].rpartition('/')[2]} gives has no row for each sample"
    return _write(subject, parts, samples, {name: kind for name, kind in kinds.items() if kind is not None})


ROWS = "rows"


def _trials(samples: Sequence[Array]) -> Iterator[list[Array]]:
    """Batches of the sizes that are tried, each with the samples that follow those of the one before."""
    for i, size in enumerate(TRIED):
        rows = (sum(TRIED[:i]) + np.arange(size)) % len(samples[0])
        yield [np.ascontiguousarray(array[rows]) for array in samples]


def _derived(made: Sequence[Array]) -> Callable[[Sequence[Any]], Any] | str | None:
    """How a tensor depends on the batch: it has rows, is always the same, or tells the size of the batch. None: it is
    none of these. `made`: what it was in the batches that were tried."""
    first = made[0]
    if all(one.shape == first.shape and np.array_equal(one, first) for one in made):
        return lambda inputs: _constant(first)
    if first.ndim and all(one.shape == (size, *first.shape[1:]) for size, one in zip(TRIED, made, strict=True)):
        return ROWS
    if first.dtype.kind != "i" or first.ndim > 1 or any(one.shape != first.shape for one in made):
        return None
    rest = np.ravel(first).tolist()[1:]
    if any(np.ravel(one).tolist() != [size, *rest] for size, one in zip(TRIED, made, strict=True)):
        return None
    return lambda inputs: _size(inputs[0], rest if first.ndim else None, first.dtype.name)


def _constant(value: Array) -> Any:
    import tensorflow as tf

    return tf.constant(value)


def _size(array: Any, rest: Sequence[int] | None, dtype: str) -> Any:
    """The number of samples, alone or as the first of a shape."""
    import tensorflow as tf

    if rest is None:
        return tf.cast(tf.shape(array)[0], dtype)
    return tf.concat([tf.cast(tf.shape(array)[:1], dtype), tf.constant(rest, dtype)], 0)


def _write(subject: Subject, parts: Parted, samples: dict[str, list[Array]], kinds: dict[str, Any]) -> str:
    rows = [name for name, kind in kinds.items() if kind == ROWS]
    results = parts.cut.from_core
    bypass, layout = _layout(parts, rows, results)
    functions = {BEFORE: parts.function(parts.inputs, (*rows, *bypass))}
    derived = {name: kind for name, kind in kinds.items() if kind != ROWS}
    core_function = parts.function(rows, results, derived, within=parts.cut.core)
    if layout.after:
        wanted = [name for name in parts.outputs if name.partition(":")[0] in parts.cut.after]
        given = [(*rows, *bypass)[i] if where == BEFORE else results[i] for where, i in layout.after]
        functions[AFTER] = parts.function(given, wanted, within=parts.cut.after)
    before = _stage(functions[BEFORE])
    made = {part: _in_batches(before, arrays)[: len(rows)] for part, arrays in samples.items()}
    core = _core_subject(subject, made["held_out"])
    notes: list[str] = []
    original = Original(
        "saved_model", core_function, None, lambda count: [f"core_out_{i}" for i in range(count)],
        core_function.variables, core_function.owner,
    )  # fmt: skip
    core.directory.mkdir()
    writer.write(core, original, {part: (arrays, []) for part, arrays in made.items()}, notes, needs_rows=False)
    for name, function in functions.items():
        _save(function, subject.directory / name)
    (subject.directory / FILE).write_text(json.dumps(dataclasses.asdict(layout), indent=1))
    if AFTER not in functions:  # with such a stage, TensorFlow is needed anyway
        _write_steps(subject, parts, functions[BEFORE], before)
    return _difference(subject, layout, before, _stage(core_function), functions)


def _write_steps(subject: Subject, parts: Parted, function: GraphFunction, before: Stage) -> None:
    """Write the first stage in plain Python and numpy, where that answers the same."""
    try:
        numpy_steps.write(function, parts.tables, subject.inputs, subject.directory, BEFORE)
        if numpy_steps.agrees(subject.directory, BEFORE, before, subject.inputs, subject.samples("held_out")):
            return
    except Exception:  # not essential: the SavedModel of the stage exists
        pass
    for suffix in (".json", ".npz"):
        (subject.directory / f"{BEFORE}{suffix}").unlink(missing_ok=True)


def _core_subject(subject: Subject, made: Sequence[Array]) -> Subject:
    inputs = tuple(
        Tensor(f"core_{i}", array.dtype.name, (None, *array.shape[1:]), array.shape[1:]) for i, array in enumerate(made)
    )
    return dataclasses.replace(
        subject,
        directory=subject.directory / CORE,
        kind="saved_model",
        inputs=inputs,
        outputs=(),
        original={},
        flavours=("saved_model",),
    )


def _layout(parts: Parted, rows: Sequence[str], results: Sequence[str]) -> tuple[list[str], Layout]:
    """What passes by the core, and the layout."""
    nodes, cut = parts.nodes, parts.cut
    from_after = [name for name in parts.outputs if name.partition(":")[0] in cut.after]
    read = [tensor for name in sorted(cut.after) for tensor in nodes[name].inputs]
    outside = {tensor for tensor in read if tensor.partition(":")[0] not in cut.after}
    outside = {tensor for tensor in outside if not parts.is_table(tensor)}
    needed = sorted(tensor for tensor in outside if tensor.partition(":")[0] not in cut.fixed)
    passed = [name for name in (*needed, *parts.outputs) if name not in results and name not in from_after]
    bypass = [name for name in dict.fromkeys(passed) if name not in rows]
    made = [*rows, *bypass]

    def place(tensor: str) -> tuple[str, int]:
        if tensor in results:
            return CORE, list(results).index(tensor)
        return (AFTER, from_after.index(tensor)) if tensor in from_after else (BEFORE, made.index(tensor))

    after = tuple(place(name) for name in needed) if from_after else ()
    return bypass, Layout(len(rows), after, tuple(place(name) for name in parts.outputs))


def _stage(function: GraphFunction) -> Stage:
    """The function on arrays, traced once for each shape."""
    import tensorflow as tf

    traced = tf.function(lambda *inputs: tuple(function(inputs)), autograph=False)
    return lambda arrays: [plain_array(one) for one in traced(*[tf.constant(array) for array in arrays])]


def _in_batches(stage: Stage, arrays: list[Array]) -> list[Array]:
    count = len(arrays[0])
    pieces = [stage(feed) for feed in in_batches(arrays, min(BATCH, count))]
    return [np.concatenate(column)[:count] for column in zip(*pieces, strict=True)]


def _save(function: GraphFunction, directory: Path) -> None:
    """Save a stage; its `serve` takes and returns tensors with any batch size."""
    import tensorflow as tf

    module = tf.Module()
    module.owner = function.owner
    module.serve = tf.function(lambda *inputs: tuple(function(inputs)), autograph=False)
    module.serve.get_concrete_function(*function.specifications)
    tf.saved_model.save(module, str(directory))


def _difference(
    subject: Subject, layout: Layout, before: Stage, core: Stage, functions: dict[str, GraphFunction]
) -> str:
    """What the stages together answer otherwise than the model; empty if nothing. Tried at two batch sizes."""
    after = _stage(functions[AFTER]) if AFTER in functions else None
    for size in (1, BATCH):
        feed = next(in_batches(subject.samples("held_out"), size))
        expected = [array[:size] for array in subject.answers("held_out")]
        joined = {BEFORE: before(feed), CORE: [], AFTER: []}
        joined[CORE] = core(joined[BEFORE][: layout.inputs])
        if after is not None:
            joined[AFTER] = after([joined[where][i] for where, i in layout.after])
        answers = [joined[where][i][: len(one)] for (where, i), one in zip(layout.outputs, expected, strict=True)]
        if min(agreement(expected, answers)) < SAME:
            return "its stages together answer otherwise than the model"
    return ""
