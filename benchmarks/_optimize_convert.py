"""What a person makes of a model by hand with each tool, at the settings that each tool's own guide recommends.

    python benchmarks/_optimize_convert.py DIRECTORY BATCH      reads model.keras and data.npz there

Every tool starts from the same Keras model with a static batch. Where a converter is known to stumble it is given a
hand, as an expert would: GELU is repaired for ONNX, a recurrent model is unrolled for OpenVINO. What still fails is
told on a line, and that peer has one setting less.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from flatout.routes._onnx.repair import repair

SAMPLES = 96
"""For calibration."""


class Bench:
    """One model, one batch."""

    def __init__(self, directory: Path, batch: int) -> None:
        import keras
        import tensorflow as tf

        self.directory, self.batch = directory, batch
        self.model = keras.saving.load_model(directory / "model.keras", compile=False)
        with np.load(directory / "data.npz") as data:
            self.samples = data["x"][:SAMPLES]
        self.signature = tf.TensorSpec([batch, *self.samples.shape[1:]], self.samples.dtype, name="x")

    def path(self, name: str) -> Path:
        return self.directory / f"{self.batch}-{name}"

    def batches(self) -> list[Any]:
        size = self.batch
        return [self.samples[i : i + size] for i in range(0, len(self.samples) - size + 1, size)]

    def frozen(self) -> Any:
        import tensorflow as tf
        from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

        function = tf.function(lambda x: self.model(x, training=False))
        return convert_variables_to_constants_v2(function.get_concrete_function(self.signature))


def litert(bench: Bench) -> None:
    import tensorflow as tf

    def converter() -> Any:
        return tf.lite.TFLiteConverter.from_concrete_functions([bench.frozen()])

    bench.path("float32.tflite").write_bytes(converter().convert())
    dynamic = converter()
    dynamic.optimizations = [tf.lite.Optimize.DEFAULT]
    bench.path("dynamic.tflite").write_bytes(dynamic.convert())
    full = converter()
    full.optimizations = [tf.lite.Optimize.DEFAULT]
    full.representative_dataset = lambda: ([batch] for batch in bench.batches())
    bench.path("int8.tflite").write_bytes(full.convert())


def onnx(bench: Bench) -> None:
    import onnx
    import tensorflow as tf
    import tf2onnx

    function = tf.function(lambda x: bench.model(x, training=False))
    model, _ = tf2onnx.convert.from_function(function, [bench.signature], opset=17)
    repair(model)
    onnx.checker.check_model(model)
    onnx.save(model, bench.path("float32.onnx"))


def onnx_quantized(bench: Bench) -> None:
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader:
        def __init__(self) -> None:
            self.batches = iter(bench.batches())

        def get_next(self) -> Any:
            batch = next(self.batches, None)
            return None if batch is None else {"x": batch}

    source, prepared = bench.path("float32.onnx"), bench.path("prepared.onnx")
    quantize_dynamic(source, bench.path("dynamic.onnx"), per_channel=True)
    quant_pre_process(source, prepared, skip_symbolic_shape=True)
    quantize_static(
        prepared,
        bench.path("int8.onnx"),
        Reader(),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )


def openvino(bench: Bench) -> None:
    import keras
    import openvino as ov
    import tensorflow as tf

    recurrent = [layer for layer in bench.model.layers if isinstance(layer, keras.layers.RNN)]
    for layer in recurrent:
        layer.unroll = True
    try:
        tf.io.write_graph(bench.frozen().graph, str(bench.directory), bench.path("frozen.pb").name, as_text=False)
    finally:
        for layer in recurrent:
            layer.unroll = False
    ov.save_model(ov.convert_model(bench.path("frozen.pb")), bench.path("float32.xml"), compress_to_fp16=False)


def openvino_onnx(bench: Bench) -> None:
    import openvino as ov

    ov.save_model(ov.convert_model(bench.path("float32.onnx")), bench.path("onnx.xml"), compress_to_fp16=False)


def nncf_quantized(bench: Bench) -> None:
    import nncf
    import openvino as ov

    kind = nncf.ModelType.TRANSFORMER if "encoder" in str(bench.directory) else None
    for name in ("float32", "onnx"):
        if bench.path(f"{name}.xml").exists():
            model = ov.Core().read_model(bench.path(f"{name}.xml"))
            quantized = nncf.quantize(model, nncf.Dataset(bench.batches()), model_type=kind)
            ov.save_model(quantized, bench.path(f"{name}-int8.xml"), compress_to_fp16=False)


def neural_compressor(bench: Bench) -> None:
    from neural_compressor.tensorflow import StaticQuantConfig, quantize_model

    class Batches:
        batch_size = bench.batch

        def __iter__(self) -> Any:
            return ((batch, None) for batch in bench.batches())

    folder = bench.path("saved_model")
    bench.model.export(folder, verbose=False)
    quantized = quantize_model(str(folder), StaticQuantConfig(), Batches())
    quantized.save(str(bench.path("neural_compressor")))


STEPS: tuple[Callable[[Bench], None], ...] = (
    litert, onnx, onnx_quantized, openvino, openvino_onnx, nncf_quantized, neural_compressor,
)  # fmt: skip


def main() -> None:
    """Each step in a process of its own: a converter that crashes takes nothing else along."""
    directory, batch, *step = sys.argv[1:]
    steps = {one.__name__: one for one in STEPS}
    if step:
        steps[step[0]](Bench(Path(directory), int(batch)))
        return
    for name in steps:
        done = subprocess.run([sys.executable, __file__, directory, batch, name], stderr=subprocess.PIPE, text=True)
        sys.stderr.write(done.stderr)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or [""])[-1]
            Path(directory, f"{batch}-{name}.failed").write_text(f"left with {done.returncode}: {last[:200]}")


if __name__ == "__main__":
    main()
