"""8-bit ONNX models: weights per channel, activations unsigned, with ranges from samples or at run time.

`quantize_mixed` keeps the worst layers in float and doubles their number until the answers to the calibration samples
agree with the original's. Held-out samples are not used.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flatout.environment.machine import cpu_flags
from flatout.measure.agreement import agreement
from flatout.model.errors import ConversionFailed, RouteNotNeeded
from flatout.subject import Subject, in_batches

SAMPLES = 128
"""More than some dozens of samples hardly change the ranges."""
COMPARED_SAMPLES = 16
ENOUGH = 0.995
"""Agreement with the original at which no further layer is returned to float."""
HEAVY = ("Conv", "ConvTranspose", "Gemm", "MatMul")


def quantize(source: Path, target: Path, subject: Subject, signed: bool = False) -> None:
    """`signed`: symmetric signed activations, which TensorRT needs; x86 is faster with unsigned ones."""
    with _prepared(source) as prepared:
        _quantize(prepared, target, subject, signed)


def quantize_dynamically(source: Path, target: Path) -> None:
    """8-bit weights; activations are quantized at run time."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with _prepared(source) as prepared:
        quantize_dynamic(prepared, target, per_channel=True, weight_type=QuantType.QInt8)


def quantize_mixed(source: Path, target: Path, subject: Subject) -> None:
    with _prepared(source) as prepared:
        _quantize(prepared, target, subject)
        if _agreement(target, subject) >= ENOUGH:
            raise RouteNotNeeded("no layer needs float: the answers of onnxruntime-int8 agree with the original's")
        worst = _worst_first(prepared, target, subject)
        count = 1
        while True:
            _quantize(prepared, target, subject, in_float=worst[:count])
            if _agreement(target, subject) >= ENOUGH:
                return
            if count >= (len(worst) + 1) // 2:
                raise ConversionFailed(
                    f"With {count} of {len(worst)} layers in float the answers still do not agree with the original."
                )
            count *= 2


@contextlib.contextmanager
def _prepared(source: Path) -> Iterator[Path]:
    """The model with constants folded, and batch normalizations folded into convolutions before these are quantized."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "prepared.onnx"
        quant_pre_process(source, path, skip_symbolic_shape=True)
        yield path


def _quantize(source: Path, target: Path, subject: Subject, signed: bool = False, in_float: Sequence[str] = ()) -> None:
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static

    convolutional = any("Conv" in name for name in subject.ops)
    quantize_static(
        source,
        target,
        _Reader(source, subject),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        # Without instructions for dot products of bytes, sums of two 8-bit products overflow; 7 bits do not.
        reduce_range=cpu_flags().isdisjoint({"avx512_vnni", "avx_vnni", "asimddp"}),
        weight_type=QuantType.QInt8,
        activation_type=QuantType.QInt8 if signed else QuantType.QUInt8,
        # Between convolutions all has to be 8-bit, or each edge is converted twice; elsewhere only products gain.
        op_types_to_quantize=None if convolutional else ["MatMul", "Gemm"],
        nodes_to_exclude=list(in_float),
        extra_options={"ActivationSymmetric": signed, "MatMulConstBOnly": True},
    )


class _Reader:
    """Gives samples to ONNX Runtime's calibration."""

    def __init__(self, source: Path, subject: Subject) -> None:
        self._names = [entry.name for entry in _session(source).get_inputs()]
        self._batches = subject.calibration(_batch(subject), at_most=SAMPLES)

    def get_next(self) -> dict[str, Any] | None:
        batch = next(self._batches, None)
        return None if batch is None else dict(zip(self._names, batch, strict=True))


def _worst_first(plain: Path, quantized: Path, subject: Subject) -> list[str]:
    """Names of the heavy nodes, by decreasing rounding error of their inputs and outputs in 8 bits."""
    import onnx

    scales = _scales(onnx.load(quantized))
    nodes = [node for node in onnx.load(plain).graph.node if node.op_type in HEAVY]
    values = _tensors(plain, list(scales), subject)

    def error(node: Any) -> float:
        axis = 1 if "Conv" in node.op_type else -1
        names = {name for name in (node.input[0], node.output[0]) if name in values}
        return max((_rounding_error(values[name], *scales[name], axis) for name in names), default=0.0)

    worst = {node.name: error(node) for node in nodes}
    return sorted(worst, key=lambda name: -worst[name])


def _scales(model: Any) -> dict[str, tuple[float, float]]:
    """Step size and zero point of each quantized activation."""
    from onnx import numpy_helper

    constants = {item.name: item for item in model.graph.initializer}
    found = {}
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear" and node.input[0] not in constants:
            step, zero = (numpy_helper.to_array(constants[name]) for name in node.input[1:3])
            found[node.input[0]] = (float(step), float(zero))
    return found


def _rounding_error(values: Any, step: float, zero: float, axis: int) -> float:
    """The relative error of a channel, averaged over all channels, so that large channels do not hide small ones."""
    lowest = -128 if zero < 0 else 0
    rounded = np.clip(np.round(values / step) + zero, lowest, lowest + 255)
    difference = (rounded - zero) * step - values
    others = tuple(i for i in range(values.ndim) if i != axis % values.ndim)
    size, error = np.sqrt(np.mean(values**2, axis=others)), np.sqrt(np.mean(difference**2, axis=others))
    return float(np.mean(np.where(size > 0, np.minimum(1.0, error / np.maximum(size, 1e-30)), 0.0)))


def _agreement(path: Path, subject: Subject) -> float:
    """Agreement with the original on the calibration samples."""
    names = [output.name for output in _session(path).get_outputs()]
    found = _tensors(path, names, subject, SAMPLES)
    return min(agreement(subject.answers("calibration"), [found[name] for name in names]))


def _tensors(path: Path, names: Sequence[str], subject: Subject, samples: int = COMPARED_SAMPLES) -> dict[str, Any]:
    """The values of these tensors for some samples, whether they are outputs of the model or not."""
    import onnx

    model = onnx.load(path)
    existing = {name for node in model.graph.node for name in node.output}
    outputs = {output.name for output in model.graph.output}
    wanted = [name for name in dict.fromkeys(names) if name in existing]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted if name not in outputs)
    session = _session(model.SerializeToString())
    inputs = [entry.name for entry in session.get_inputs()]
    arrays = [array[:samples] for array in subject.samples("calibration")]
    size = _batch(subject)
    pieces = [session.run(wanted, dict(zip(inputs, feed, strict=True))) for feed in in_batches(arrays, size)]
    join = np.concatenate if size else np.stack
    columns = [join([np.atleast_1d(piece[i]) for piece in pieces]) for i in range(len(wanted))]
    return {name: column[: len(arrays[0])] for name, column in zip(wanted, columns, strict=True)}


def _batch(subject: Subject) -> int:
    return 8 if subject.batching == "dynamic" else subject.batches[0]


def _session(model: Any) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
