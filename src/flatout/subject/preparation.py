"""Prepares the subject: opens the model, reads the data, fixes shapes, writes the directory with the answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from flatout.model.errors import DataUnusable, ModelUnusable
from flatout.subject import data, input_matching, metric, split_writer, writer
from flatout.subject.opening import open_original
from flatout.subject.original import DeclaredInput, Original
from flatout.subject.samples import Samples
from flatout.subject.subject import Array, Subject, Tensor

SYNTHETIC_SAMPLES = 64
FEW_SAMPLES = 32

Batching = Literal["dynamic", "fixed", "none"]


@dataclass(frozen=True)
class SubjectRequest:
    """What to make a subject of, in plain values that a child process can be given."""

    directory: str
    model: str
    data: str | None = None
    features: str | None = None
    metric: str | None = None
    batches: tuple[int, ...] = (1,)
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    samples: int = 2000
    """The largest number of held-out samples."""
    calibration: int = 256
    """The largest number of calibration samples."""
    signature: str | None = None
    trust: bool = False
    imports: tuple[str, ...] = ()

    @property
    def read_limit(self) -> int:
        """How many samples to read from sources that yield them one by one."""
        return self.samples + self.calibration

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> SubjectRequest:
        return cls(**values | {"batches": tuple(values["batches"]), "imports": tuple(values["imports"])})


@dataclass(frozen=True)
class InMemory:
    """A model, data or metric of the user's own process, in place of those that the request names."""

    original: Original | None = None
    data: Any = None
    metric: Callable[..., Any] | None = None

    def __bool__(self) -> bool:
        return self.original is not None or self.data is not None or self.metric is not None


@dataclass
class Prepared:
    subject: Subject
    evaluator: metric.MetricEvaluator | None
    metric: float | None
    """The original's metric on the held-out samples."""
    notes: list[str]
    mixed_up: list[float] = field(default_factory=list)
    """The metric when the original's answers are given to other samples."""

    def summary(self) -> dict[str, Any]:
        first = self.evaluator is not None and self.evaluator.first_output_only
        return {
            "metric": self.metric,
            "notes": self.notes,
            "judged": self.evaluator is not None,
            "first_output_only": first,
            "mixed_up": self.mixed_up,
        }


def prepare(request: SubjectRequest, in_memory: InMemory | None = None) -> Prepared:
    in_memory = in_memory or InMemory()
    notes: list[str] = []
    model = in_memory.original or open_original(
        request.model, trust=request.trust, imports=request.imports, signature=request.signature
    )
    samples = _samples(request, in_memory, model)
    inputs = model.inputs or _inputs_from_data(samples, request.shapes)
    if not model.inputs:
        notes.append("The model does not say which shapes it takes: the artefact takes those of the samples alone.")
    inputs = _with_ranks(inputs, samples, request.shapes)
    batching = _batching(inputs, samples)
    declared = inputs
    inputs = tuple(input_matching.apply_shapes(inputs, request.shapes, batching != "none"))
    arrays = input_matching.match_inputs(samples, inputs, batching != "none") if samples else None
    tensors = tuple(_tensor(one, i, arrays, batching) for i, one in enumerate(inputs))
    tensors = tuple(dataclasses.replace(one, shape=was.shape) for one, was in zip(tensors, declared, strict=True))
    if samples and samples.label_names and (request.metric or in_memory.metric):
        samples.order_labels(model.output_names(len(samples.labels)))
    labels = samples.labels if samples else []
    evaluator = _evaluator(request.metric, in_memory.metric, labels)
    subject = Subject(
        directory=Path(request.directory),
        source=request.model,
        kind=model.kind,
        inputs=tensors,
        outputs=(),
        batches=_batches(request.batches, batching, inputs, notes),
        batching=batching,
        data="given" if samples else "synthetic",
        original=dict(model.reopen),
    )
    if arrays is not None and len(arrays[0]) < FEW_SAMPLES:
        notes.append(
            f"{len(arrays[0])} samples are too few to tell how well artefacts agree with the original: a quarter is "
            "for calibration, the rest for the check. Give some hundred."
        )
    parts = _parts(arrays or input_matching.random_samples(tensors, SYNTHETIC_SAMPLES), labels, request)
    subject = split_writer.with_stages(_written(subject, model, parts, notes), notes)
    if evaluator is None:
        return Prepared(subject, None, None, notes)
    evaluator.labels, evaluator.original = parts["held_out"][1], subject.answers("held_out")
    value = evaluator.evaluate(evaluator.original)
    if not np.isfinite(value):
        raise DataUnusable(
            f"{request.metric or 'The metric'} of the original is not a number: labels or answers do not fit it."
        )
    return Prepared(subject, evaluator, value, notes, evaluator.mixed_up())


def _written(subject: Subject, model: Original, parts: writer.Parts, notes: list[str]) -> Subject:
    """The subject with the original's answers; what the model itself refuses is told in one sentence."""
    import tensorflow as tf

    try:
        return writer.write(subject, model, parts, notes)
    except tf.errors.OpError as error:
        reason = " ".join(str(error.message).split())[:300]
        if subject.data == "synthetic":
            raise ModelUnusable(
                f"The model does not answer made-up inputs: {reason}. Give real samples with --data (serialized "
                "examples as bytes, where it parses them)."
            ) from error
        raise DataUnusable(f"The model itself fails on the samples: {reason}. Check what its inputs take.") from error


def _samples(request: SubjectRequest, in_memory: InMemory, model: Original) -> Samples | None:
    if in_memory.data is not None:
        return data.samples_from_object(in_memory.data, model.inputs, request.read_limit, "the data")
    if request.data is not None:
        return data.read_samples(request.data, model.inputs, request.features, request.read_limit)
    return None


def _evaluator(
    name: str | None, function: Callable[..., Any] | None, labels: list[Array]
) -> metric.MetricEvaluator | None:
    requested = function or name
    if requested is None:
        return None
    if not labels:
        raise DataUnusable(
            f"{name or 'The metric'} compares answers with labels, and the data has none. Add labels (`y` in an .npz, "
            "the second of a pair in a dataset), or leave the metric out: then agreement with the original is measured."
        )
    return metric.MetricEvaluator(metric.metric_function(requested), labels, metric.is_of_keras(requested))


def _inputs_from_data(samples: Samples | None, shapes: Mapping[str, Sequence[int]]) -> tuple[DeclaredInput, ...]:
    """The inputs of a model that was never built: those of the data, or of --shape."""
    if samples is not None:
        return tuple(
            DeclaredInput(
                f"input_{i}" if name.isdigit() else name,
                "float32" if array.dtype == np.float64 else "str" if array.dtype.kind in "SUO" else array.dtype.name,
                (None, *array.shape[1:]),
            )
            for i, (name, array) in enumerate(samples.arrays.items())
        )
    if shapes:
        return tuple(DeclaredInput(name, "float32", (None, *shape)) for name, shape in shapes.items())
    raise ModelUnusable(
        "The model was never called, so it does not know the shape of its inputs. Give data, or --shape NAME=28,28,1 "
        "(without the batch dimension)."
    )


def _with_ranks(
    inputs: Sequence[DeclaredInput], samples: Samples | None, shapes: Mapping[str, Sequence[int]]
) -> tuple[DeclaredInput, ...]:
    """Inputs that the model declares without a number of dimensions get that of the data, or of --shape."""
    given = {} if samples is None else dict(zip((one.name for one in inputs), samples.arrays.values(), strict=False))
    given |= {} if samples is None else samples.arrays
    found = []
    for one in inputs:
        lengths = given[one.name].shape[1:] if one.name in given else shapes.get(one.name)
        if one.any_rank and lengths is not None:
            one = dataclasses.replace(one, shape=(None, *[None for _ in lengths]), any_rank=False)
        found.append(one)
    return tuple(found)


def _batching(inputs: Sequence[DeclaredInput], samples: Samples | None) -> Batching:
    first_lengths = {one.shape[0] if one.shape else 0 for one in inputs}
    if first_lengths == {None}:
        return "dynamic"
    if len(first_lengths) > 1 or 0 in first_lengths:
        return "none"
    if samples is not None:
        first = next(iter(samples.arrays.values()))
        return "fixed" if first.ndim == len(inputs[0].shape) else "none"
    return "fixed" if len(inputs[0].shape) > 1 else "none"


def _batches(
    requested: tuple[int, ...], batching: Batching, inputs: Sequence[DeclaredInput], notes: list[str]
) -> tuple[int, ...]:
    if batching == "dynamic":
        return requested
    only = (inputs[0].shape[0] or 1,) if batching == "fixed" else (0,)
    if requested not in (only, (1,)):
        reason = f"only takes batches of {only[0]}" if only[0] else "has no batch dimension"
        notes.append(f"The model {reason}: --batch {','.join(map(str, requested))} was ignored.")
    return only


def _tensor(one: DeclaredInput, index: int, arrays: list[Array] | None, batching: Batching) -> Tensor:
    declared = one.shape if batching == "none" else one.shape[1:]
    sample = arrays[index].shape[1:] if arrays is not None else declared
    if any(n is None for n in sample):
        raise ModelUnusable(
            f"Input {one.name!r} has an open length: {one.shape}. Give data, or --shape {one.name}="
            + ",".join("N" if n is None else str(n) for n in declared)
        )
    return Tensor(one.name, one.dtype, one.shape, tuple(int(n) for n in sample if n is not None))


def _parts(
    arrays: list[Array], labels: list[Array], request: SubjectRequest
) -> dict[str, tuple[list[Array], list[Array]]]:
    rows = split_samples([*arrays, *labels], request)
    return {name: ([a[i] for a in arrays], [a[i] for a in labels]) for name, i in rows.items() if name != "spare"}


def split_samples(columns: Sequence[Array], request: SubjectRequest) -> dict[str, Array]:
    """Indices of the samples for each use, shuffled once. Converters never see the samples of the check.

    `spare` is what is left over: a search may choose by it.
    """
    if any(np.ndim(column) == 0 for column in columns):
        raise DataUnusable("The labels are a single value: there has to be a row for every sample.")
    counts = sorted({len(column) for column in columns})
    if len(counts) > 1:
        raise DataUnusable(
            f"The inputs and labels have {' and '.join(map(str, counts))} samples: there has to be a row of each for "
            "every sample. Leave out the rows that have no counterpart."
        )
    count = counts[0]
    if count < 2:
        raise DataUnusable(f"{count} samples are too few: some are needed for calibration, others for the check.")
    order = np.random.default_rng(0).permutation(count)
    calibration = max(1, min(request.calibration, count // 4))
    end = calibration + request.samples
    return {"calibration": order[:calibration], "held_out": order[calibration:end], "spare": order[end:]}
