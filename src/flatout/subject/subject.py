"""`Subject`: the model to be optimized, as a directory that a child process writes once.

Whatever the user gave (a Keras file, H5, SavedModel, a model in memory, a factory), the directory contains:

    subject.json          this module's `Subject`
    saved_model/          the model as a SavedModel, its weights stored once; `graph.py` opens it
    unrolled/             the same with unrolled recurrent layers, where it has some and their length is known
    calibration.npz       samples for converters: `in0`, `in1`, … in the order of the inputs
    calibration_out.npz   the original's answers to them: `out0`, `out1`, …
    held_out.npz          samples that converters never see; only checks read them
    held_out_out.npz      the original's answers to those
    core/, before/, …     the stages of a model whose preprocessing was split off (`split_writer.py`)

Imports numpy and nothing heavier.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, Any]
FILE = "subject.json"
FEW_ELEMENTS = 8
"""Constants with at most this many elements are shapes and axes, not weights."""


@dataclass(frozen=True)
class Tensor:
    """An input or output."""

    name: str
    dtype: str
    """numpy's name; `str` for strings, and `bfloat16`, whose arrays are float32."""
    shape: tuple[int | None, ...]
    """As the model declares it, with the batch dimension; None is any length."""
    sample: tuple[int, ...] = ()
    """The shape of one sample, without the batch dimension; open lengths are fixed by the data or --shape."""


@dataclass(frozen=True)
class Subject:
    directory: Path
    source: str
    """What the user gave, for display."""
    kind: Literal["keras", "tf_keras", "saved_model"]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    batches: tuple[int, ...] = (1,)
    """Batch sizes to optimize for, the most important first. (0,): the model has no batch dimension."""
    batching: Literal["dynamic", "fixed", "none"] = "dynamic"
    parameters: int = 0
    """Elements of all constants of the frozen graph with more than `FEW_ELEMENTS` elements."""
    parameter_bytes: int = 0
    float16_error: float = 0.0
    """Relative error of the original's answers with weights and inputs rounded to float16: how sensitive the model is
    to precision. 0: not known."""
    ops: dict[str, int] = field(default_factory=dict)
    """Operations of the frozen graph and of its functions, with their number: {"Conv2D": 52}."""
    sample_ms: float = 0.0
    """Time of the original per held-out sample, in large batches. 0: not known."""
    digests: dict[str, str] = field(default_factory=dict)
    """Of each flavour's graph with its weights (`graph_digest.py`); empty where the graph does not hold everything."""
    flavours: tuple[str, ...] = ("saved_model",)
    """Directories with a SavedModel; `unrolled` is one of them where a recurrent model could be unrolled."""
    data: Literal["given", "synthetic"] = "given"
    """synthetic: random numbers, because no data was given. They are not used for calibration."""
    split: bool = False
    """Whether its preprocessing was split off: then `core()` is what other runtimes are given."""
    original: dict[str, Any] = field(default_factory=dict)
    """How another process opens the Keras model itself (`original.py`); empty where it cannot."""

    def write(self) -> None:
        values = dataclasses.asdict(self) | {"directory": "."}
        (self.directory / FILE).write_text(json.dumps(values, indent=1))

    @classmethod
    def read(cls, directory: Path) -> Subject:
        data = json.loads((directory / FILE).read_text())
        data["inputs"] = tuple(_tensor(item) for item in data["inputs"])
        data["outputs"] = tuple(_tensor(item) for item in data["outputs"])
        data["batches"], data["flavours"] = tuple(data["batches"]), tuple(data["flavours"])
        return cls(**data | {"directory": directory})

    def core(self) -> Subject:
        """The numeric core of a model that was split, a subject of its own."""
        return Subject.read(self.directory / "core")

    @property
    def recurrent(self) -> bool:
        """Whether it has loops (LSTM, GRU, while), for which converters may need a static batch or unrolling."""
        return any(name in self.ops for name in ("While", "StatelessWhile", "TensorListReserve"))

    @property
    def has_calibration_data(self) -> bool:
        return self.data == "given" and (self.directory / "calibration.npz").exists()

    def calibration(self, batch: int = 1, at_most: int = 1024) -> Iterator[list[Array]]:
        """Calibration samples in batches of this size: lists of arrays in the order of the inputs."""
        yield from in_batches(self.samples("calibration"), batch, at_most)

    def samples(self, part: Literal["calibration", "held_out"]) -> list[Array]:
        return _read(self.directory / f"{part}.npz", "in", len(self.inputs))

    def answers(self, part: Literal["calibration", "held_out"]) -> list[Array]:
        """The original's answers to these samples: a list of arrays in the order of the outputs."""
        return _read(self.directory / f"{part}_out.npz", "out", len(self.outputs))


def in_batches(arrays: list[Array], batch: int, at_most: int | None = None) -> Iterator[list[Array]]:
    """Full batches: the last one is filled up with the first samples. Batch 0: single samples, no batch dimension."""
    count = min(len(arrays[0]), at_most or len(arrays[0]))
    if batch == 0:
        for i in range(count):
            yield [array[i] for array in arrays]
        return
    for start in range(0, count, batch):
        rows = [i % count for i in range(start, start + batch)]
        yield [np.ascontiguousarray(array[rows]) for array in arrays]


def plain_array(array: Any) -> Array:
    """An array of one of numpy's own types: bfloat16, which is not one, becomes float32; strings become bytes."""
    made: Array = np.array(array)
    if made.dtype.kind in "OU":
        return as_bytes(made)
    return made.astype(np.float32) if made.dtype.name == "bfloat16" else made


def as_bytes(array: Array) -> Array:
    """Strings, in any form that numpy or Python has for them, as bytes in UTF-8; bytes stay as they are."""
    if array.dtype.kind == "S":
        return array
    texts = [one if isinstance(one, bytes) else str(one).encode("utf-8", "surrogateescape") for one in array.ravel()]
    return np.array(texts, dtype=np.bytes_).reshape(array.shape) if texts else np.zeros(array.shape, "S1")


def write_arrays(path: Path, prefix: str, arrays: Sequence[Array]) -> None:
    named: dict[str, Any] = {f"{prefix}{i}": array for i, array in enumerate(arrays)}
    np.savez(path, **named)


def written_arrays(path: Path, prefix: str) -> list[Array]:
    """All that `write_arrays` has written."""
    with np.load(path, allow_pickle=False) as stored:
        return [stored[f"{prefix}{i}"] for i in range(len(stored.files))]


def for_size(path: Path, size: int) -> Path:
    """The file beside this one for the answers to so many samples at once."""
    return path.with_name(f"{path.stem}-of-{size}{path.suffix}")


def _read(path: Path, prefix: str, count: int) -> list[Array]:
    with np.load(path, allow_pickle=False) as stored:
        return [stored[f"{prefix}{i}"] for i in range(count)]


def _tensor(data: dict[str, Any]) -> Tensor:
    return Tensor(data["name"], data["dtype"], tuple(data["shape"]), tuple(data["sample"]))
