"""Compares the outputs of a transformed model with those that they must equal, after every transformation.

An exact transformation (folding, the removal of silenced channels) must agree up to float rounding; a quantized file
must agree with the rounded model that it came from up to a quantization step. A result that fails is not returned.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flatout.model.errors import CompressionFailed
from flatout.optimize.compress.structure import graph

Array = np.ndarray[Any, Any]

ROUNDING = {"float64": 1e-9, "float32": 2e-4, "bfloat16": 6e-2, "float16": 1e-2}
"""Largest difference of a correct result, relative to the largest value. Float32 rounding through a hundred layers
stays below 1e-5; a wrongly connected channel gives 1e-2 and more."""


@dataclass(frozen=True)
class Check:
    name: str
    deviation: float
    """Largest difference, relative to the largest value."""
    allowed: float

    @property
    def passed(self) -> bool:
        return self.deviation <= self.allowed


def samples(model: Any, count: int = 4, seed: int = 0, data: Any = None) -> list[Array]:
    """Arrays for the inputs of a model: the first of the user's data, or random ones that fit the inputs."""
    functional = graph.functional(model)
    if data is not None:
        from keras import tree

        given = [np.asarray(part)[:count] for part in tree.flatten(data)]
        if len(given) >= len(functional.inputs):
            return given[: len(functional.inputs)]
    generator = np.random.default_rng(seed)
    sizes = _vocabularies(model)
    arrays = []
    for index, tensor in enumerate(functional.inputs):
        unknown = 64 if len(tensor.shape) > 3 else 16
        shape = (tensor.shape[0] or count, *(size or unknown for size in tensor.shape[1:]))
        kind = np.dtype("float32") if tensor.dtype == "bfloat16" else np.dtype(tensor.dtype)
        if kind.kind == "f":
            arrays.append(generator.normal(size=shape).astype(kind))
        else:
            arrays.append(generator.integers(0, sizes.get(index, 2) if kind.kind != "b" else 2, shape).astype(kind))
    return arrays


def outputs(model: Any, arrays: Sequence[Array]) -> list[Array]:
    """The outputs of a model, as arrays of float64."""
    import keras
    from keras import tree

    given = tree.pack_sequence_as(
        graph.functional(model)._inputs_struct, [keras.ops.convert_to_tensor(a) for a in arrays]
    )
    with _full_precision():
        answer = tree.flatten(model(given, training=False))
    return [keras.ops.convert_to_numpy(keras.ops.cast(part, "float32")).astype(np.float64) for part in answer]


def outputs_by_batch(model: Any, arrays: Sequence[Array], size: int) -> list[Array]:
    """The outputs for more inputs than fit into memory at once."""
    starts = range(0, len(arrays[0]), size)
    parts = [outputs(model, [array[start : start + size] for array in arrays]) for start in starts]
    return [np.concatenate(part) for part in zip(*parts, strict=True)]


@contextlib.contextmanager
def _full_precision() -> Iterator[None]:
    """GPUs multiply with ten bits of mantissa (TF32) by default, with which correct models differ by 1e-3."""
    import keras

    if keras.config.backend() == "tensorflow":
        from tensorflow import config

        before = config.experimental.tensor_float_32_execution_enabled()
        config.experimental.enable_tensor_float_32_execution(False)
        try:
            yield
        finally:
            config.experimental.enable_tensor_float_32_execution(before)
    elif keras.config.backend() == "jax":
        with importlib.import_module("jax").default_matmul_precision("highest"):
            yield
    else:
        yield


def expect_equal(name: str, expected: Sequence[Array], found: Sequence[Array], allowed: float) -> Check:
    """Compare outputs; raises CompressionFailed if they differ by more than `allowed`."""
    deviation = 0.0
    for one, other in zip(expected, found, strict=True):
        if one.shape != other.shape:
            raise CompressionFailed(f"{name}: an output has the shape {other.shape}; {one.shape} was expected.")
        if not np.isfinite(one).all():
            raise CompressionFailed(
                f"{name}: the original itself has outputs that are not finite, so nothing can be checked."
            )
        scale = float(np.abs(one).max()) or 1.0
        difference = np.abs(one - other)
        deviation = max(deviation, float(difference.max() / scale) if np.isfinite(difference).all() else float("inf"))
    check = Check(name, deviation, allowed)
    if not check.passed:
        raise CompressionFailed(
            f"{name}: the outputs differ by {deviation:.2g} of the largest value; {allowed:.0e} would be rounding. The "
            "model was not changed. This is a bug of flatout, or a layer with unexpected behaviour: please report it "
            "with the model's summary."
        )
    return check


def distance(expected: Sequence[Array], found: Sequence[Array]) -> float:
    """How far outputs have moved, as a share of their spread: the largest of all outputs."""
    each = [float(np.sqrt(np.mean((a - b) ** 2)) / (a.std() + 1e-12)) for a, b in zip(expected, found, strict=True)]
    return float(np.max(each))  # NaN, where one of them is


def rounding_tolerance(model: Any) -> float:
    """The largest rounding error in the precision that the layers of a model compute in."""
    kinds = {getattr(layer, "compute_dtype", None) for layer in graph.layers(model)}
    return max((ROUNDING[kind] for kind in kinds if kind in ROUNDING), default=ROUNDING["float32"])


def _vocabularies(model: Any) -> dict[int, int]:
    """The size of the embedding that an input goes into, by the index of the input."""
    import keras

    found: dict[int, int] = {}

    def call(operation: Any, node: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> list[_Origin]:
        from keras import tree

        sources = [value for value in tree.flatten((arguments, keywords)) if isinstance(value, _Origin)]
        index = sources[0].index if sources else None
        if isinstance(operation, keras.layers.Embedding) and index is not None:
            found[index] = min(found.get(index, operation.input_dim), operation.input_dim)
        passes = not getattr(operation, "weights", None)
        return [_Origin(index if passes else None) for _ in node.outputs]

    graph.walk(model, [_Origin(index) for index in range(len(graph.functional(model).inputs))], call)
    return found


@dataclass(frozen=True)
class _Origin:
    """The input that a tensor comes from, with no weights in between."""

    index: int | None
