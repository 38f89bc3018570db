"""From what the user gave to the subject: open, gather data, settle shapes, write, answer with the original."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from flatout.model.errors import DataUnusable, ModelUnusable
from flatout.subject import columns, data, judging, synthetic, writing
from flatout.subject.original import Declared, Original, open_original
from flatout.subject.subject import Array, Subject, Tensor


@dataclass(frozen=True)
class Request:
    """What the user asked for, as plain values; a model, data or metric in memory stands beside it."""

    directory: str
    model: str
    data: str | None = None
    features: str | None = None
    metric: str | None = None
    batches: tuple[int, ...] = (1,)
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    samples: int = 2000
    """The most held-out samples that are looked at."""
    calibration: int = 256
    """The most that converters see."""
    signature: str | None = None
    trust: bool = False
    imports: tuple[str, ...] = ()

    @property
    def most(self) -> int:
        """Samples that are read where they come one by one."""
        return self.samples + self.calibration

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Request:
        return cls(**plain | {"batches": tuple(plain["batches"]), "imports": tuple(plain["imports"])})


@dataclass
class Prepared:
    subject: Subject
    judge: judging.Judge | None
    metric: float | None
    """Of the original, on the held-out samples."""
    notes: list[str]

    def summary(self) -> dict[str, Any]:
        return {"metric": self.metric, "notes": self.notes, "judged": self.judge is not None}


def prepare(
    request: Request,
    original: Original | None = None,
    given: Any = None,
    metric: Callable[..., Any] | None = None,
) -> Prepared:
    """`original`, `given` and `metric` are for models, data and functions in memory."""
    notes: list[str] = []
    model = original or open_original(
        request.model, trust=request.trust, imports=request.imports, signature=request.signature
    )
    samples = None
    if given is not None:
        samples = data.of_object(given, model.inputs, request.most, "the data")
    elif request.data is not None:
        samples = data.gather(request.data, model.inputs, request.features, request.most)
    inputs = model.inputs or _inputs_of(samples, request.shapes)
    batching = _batching(inputs, samples)
    inputs = tuple(columns.settled(inputs, request.shapes, batching != "none"))
    arrays = columns.matched(samples, inputs, batching != "none") if samples else None
    tensors = tuple(_tensor(one, i, arrays, batching) for i, one in enumerate(inputs))
    batches = _batches(request.batches, batching, inputs, notes)
    labels = samples.labels if samples else []
    judge = _judge(request.metric, metric, labels)
    if arrays is None:
        arrays = synthetic.samples(tensors, count=64)
    subject = Subject(
        directory=Path(request.directory),
        source=request.model,
        kind=model.kind,
        inputs=tensors,
        outputs=(),
        batches=batches,
        batching=batching,
        data="given" if samples else "synthetic",
        original=dict(model.reopen),
    )
    parts = _parts(arrays, labels, request)
    subject = writing.write(subject, model, parts, notes)
    if judge is None:
        return Prepared(subject, None, None, notes)
    judge.labels, judge.original = parts["held_out"][1], subject.answers("held_out")
    value = judge.of(judge.original)
    if not np.isfinite(value):
        raise DataUnusable(
            f"{request.metric or 'The metric'} of the original is not a number: its labels or answers do not fit it."
        )
    return Prepared(subject, judge, value, notes)


def _judge(name: str | None, function: Callable[..., Any] | None, labels: list[Array]) -> judging.Judge | None:
    wanted = function or name
    if wanted is None:
        return None
    if not labels:
        raise DataUnusable(
            f"{name or 'The metric'} compares answers with labels, and the data has none. Add them (`y` in an .npz, "
            "the second of a pair in a dataset), or leave the metric out: then agreement with the original is measured."
        )
    return judging.Judge(judging.measure_of(wanted), labels)


def _inputs_of(samples: data.Samples | None, shapes: Mapping[str, Sequence[int]]) -> tuple[Declared, ...]:
    """Of a model that was never called: what the data has, or what --shape says."""
    if samples is not None:
        return tuple(
            Declared(
                f"input_{i}" if name.isdigit() else name,
                "float32" if array.dtype == np.float64 else "str" if array.dtype.kind in "SUO" else array.dtype.name,
                (None, *array.shape[1:]),
            )
            for i, (name, array) in enumerate(samples.arrays.items())
        )
    if shapes:
        return tuple(Declared(name, "float32", (None, *shape)) for name, shape in shapes.items())
    raise ModelUnusable(
        "The model was never called, so it does not know the shape of its inputs. Give data, or --shape NAME=28,28,1 "
        "(batch dimension left out)."
    )


def _batching(inputs: Sequence[Declared], samples: data.Samples | None) -> Any:
    lead = {one.shape[0] if one.shape else 0 for one in inputs}
    if lead == {None}:
        return "dynamic"
    if len(lead) > 1 or 0 in lead:
        return "none"
    if samples is not None:
        first = next(iter(samples.arrays.values()))
        return "fixed" if first.ndim == len(inputs[0].shape) else "none"
    return "fixed" if len(inputs[0].shape) > 1 else "none"


def _batches(wanted: tuple[int, ...], batching: str, inputs: Sequence[Declared], notes: list[str]) -> tuple[int, ...]:
    if batching == "dynamic":
        return wanted
    only = (inputs[0].shape[0] or 1,) if batching == "fixed" else (0,)
    if wanted not in (only, (1,)):
        said = f"takes batches of {only[0]} only" if only[0] else "has no batch dimension"
        notes.append(f"The model {said}: --batch {','.join(map(str, wanted))} was left aside.")
    return only


def _tensor(one: Declared, position: int, arrays: list[Array] | None, batching: str) -> Tensor:
    dims = one.shape if batching == "none" else one.shape[1:]
    found = arrays[position].shape[1:] if arrays is not None else dims
    if any(n is None for n in found):
        raise ModelUnusable(
            f"Input {one.name!r} leaves a length open: {one.shape}. Give data, or --shape {one.name}="
            + ",".join("N" if n is None else str(n) for n in dims)
        )
    return Tensor(one.name, one.dtype, one.shape, tuple(int(n) for n in found if n is not None))


def _parts(arrays: list[Array], labels: list[Array], request: Request) -> dict[str, tuple[list[Array], list[Array]]]:
    rows = parted([*arrays, *labels], request)
    return {name: ([a[i] for a in arrays], [a[i] for a in labels]) for name, i in rows.items() if name != "spare"}


def parted(columns: Sequence[Array], request: Request) -> dict[str, Array]:
    """Numbers of the samples for each use, shuffled once: what converters see is never judged by.

    `spare` is what is left over: a search may choose by it.
    """
    count = min(len(column) for column in columns)
    if count < 2:
        raise DataUnusable(f"{count} samples are too few: some are for calibration, others for the check.")
    order = np.random.default_rng(0).permutation(count)
    seen = max(1, min(request.calibration, count // 4))
    last = seen + request.samples
    return {"calibration": order[:seen], "held_out": order[seen:last], "spare": order[last:]}
