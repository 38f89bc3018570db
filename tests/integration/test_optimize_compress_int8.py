"""Rounding as int8 does: what is trained is what the files compute."""

import importlib.util
import zipfile

import numpy as np
import pytest
from compress_models import mobile, pictures, residual, shaken

import flatout
from flatout.model.errors import CompressionFailed, CompressionRefused
from flatout.optimize.compress import checks, float_files, litert, onnx_qdq
from flatout.optimize.compress.int8 import norms as norms_module
from flatout.optimize.compress.quantize import calibrate, for_serving, sensitivity
from flatout.optimize.compress.structure import graph

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def inputs():
    return pictures(96, size=16)[0][0]


@pytest.fixture(scope="module")
def rounded(inputs):
    return flatout.quantize(shaken(mobile()), inputs).model


def test_rounding_stays_near_and_is_as_coarse_as_int8(inputs):
    model = shaken(residual())
    result = flatout.quantize(model, inputs)
    (before,), (after,) = checks.outputs(model, [inputs]), checks.outputs(result.model, [inputs])
    assert 0 < np.abs(before - after).mean() < 0.05 * before.std()
    (again,) = checks.outputs(for_serving(result.model), [inputs])
    assert np.abs(again - after).mean() < 0.1 / 256, "levels flip where float rounding decides, and seldom"
    kernels = [layer.kernel.numpy() for layer in graph.layers(for_serving(result.model)) if hasattr(layer, "kernel")]
    assert all(len(np.unique(kernel[..., 0])) <= 255 for kernel in kernels)


@pytest.mark.exhaustive
def test_weights_move_under_rounding_and_the_range_follows(inputs):
    import keras

    model = shaken(residual(blocks=1))
    model.compile(keras.optimizers.SGD(0.05), "sparse_categorical_crossentropy", jit_compile=False)
    labels = np.arange(len(inputs)) % 10
    for ranges in ("averages", "learned"):
        start = flatout.quantize(model, inputs).model
        result = flatout.quantize(model, inputs, train={"x": inputs, "y": labels, "epochs": 1}, ranges=ranges).model
        before = {variable.path: variable.numpy() for variable in start.variables}
        values = {v.path: v.numpy() for v in result.variables if "seed" not in v.path}  # dropout stays for training
        moved = {path.split("/")[-1] for path, value in values.items() if np.abs(value - before[path]).max() > 1e-6}
        assert {"kernel", "low", "high"} <= moved


def test_batch_norms_are_at_work_while_it_learns_and_folded_after(inputs, monkeypatch):
    import keras

    model = shaken(mobile())
    frozen = next(layer for layer in model.layers if "BatchNormalization" in type(layer).__name__)
    frozen.trainable = False
    model.compile(keras.optimizers.SGD(0.01), "sparse_categorical_crossentropy", jit_compile=False)
    seen = []

    def train(learner):
        norms = {layer.norm.name: layer.norm for layer in graph.layers(learner) if getattr(layer, "norm", None)}
        before = {name: norm.moving_mean.numpy() for name, norm in norms.items()}
        learner.fit(inputs, np.arange(len(inputs)) % 10, epochs=1, verbose=0)
        seen.extend(name for name, norm in norms.items() if np.abs(norm.moving_mean.numpy() - before[name]).max() > 0)

    result = flatout.quantize(model, inputs, train=train)
    assert len(seen) > 3
    assert frozen.name not in seen
    assert [check.name for check in result.checks][-2:] == ["unfolded", "folded again"]
    kinds = {type(layer).__name__ for layer in graph.layers(result.model)}
    assert "BatchNormalization" not in kinds
    assert not [layer for layer in graph.layers(result.model) if getattr(layer, "norm", None)]

    monkeypatch.setattr(norms_module, "with_norm", lambda layer, norm: [weight.numpy() for weight in layer.weights])
    with pytest.raises(CompressionFailed, match="folded again"):
        flatout.quantize(model, inputs, train=lambda learner: None)


@pytest.mark.exhaustive
def test_layers_that_hurt_are_named_and_can_stay_in_float(inputs):
    model = shaken(residual(blocks=1))
    stem = model.get_layer("stem")
    kernel = stem.kernel.numpy()
    kernel[1, 1, 0, :] *= 500.0  # one weight of each filter drowns the others in int8
    stem.kernel.assign(kernel)
    losses = sensitivity(flatout.fold(model).model, [inputs])
    assert set(losses) >= {"stem", "answer"}
    result = flatout.quantize(model, inputs, float_layers="auto", tolerance=sorted(losses.values())[-2])
    assert len(result.details["float layers"]) == 1
    wrapped = [layer.layer.name for layer in graph.layers(result.model) if type(layer).__name__ == "RoundedWeights"]
    assert result.details["float layers"][0] not in wrapped


def test_an_int8_model_saves_and_loads(rounded, inputs, tmp_path):
    import keras

    rounded.save(tmp_path / "int8.keras")
    with zipfile.ZipFile(tmp_path / "int8.keras") as archive:  # it loads where flatout is not installed
        assert b"flatout" not in archive.read("config.json")
    again = keras.saving.load_model(tmp_path / "int8.keras")
    for one, other in zip(checks.outputs(rounded, [inputs]), checks.outputs(again, [inputs]), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_bad_wishes_are_refused(rounded, inputs):
    model = residual(blocks=1)
    with pytest.raises(CompressionRefused, match="no samples"):
        flatout.quantize(model, np.zeros((0, 16, 16, 1)))
    with pytest.raises(CompressionRefused, match="float_layers"):
        flatout.quantize(model, inputs, float_layers="some")
    with pytest.raises(CompressionRefused, match="ranges"):
        flatout.quantize(model, inputs, ranges="guessed")
    calibrate(rounded, [inputs[:8]])


def test_a_file_that_computes_something_else_is_caught(tmp_path):
    (tmp_path / "x.tflite").write_bytes(b"x")
    right = [np.random.default_rng(0).normal(size=(40, 10))]
    litert.check_file(tmp_path / "x.tflite", right, [right[0] + 0.001], 3)
    with pytest.raises(CompressionFailed, match="differs from the model"):
        litert.check_file(tmp_path / "x.tflite", right, [right[0][:, ::-1]], 3)


def _missing(*names):
    return next((name for name in names if importlib.util.find_spec(name) is None), None)


@pytest.mark.exhaustive
@pytest.mark.skipif(_missing("ai_edge_litert") is not None, reason="ai-edge-litert is not installed")
def test_the_litert_file_computes_what_was_trained(rounded, inputs, tmp_path):
    written = litert.write(rounded, tmp_path / "a.tflite", [inputs])
    assert written.apart < 1
    assert written.alike > 0.95
    assert written.int8_tensors > 20
    assert written.bytes < float_files.write_litert(shaken(mobile()), tmp_path / "float.tflite", [inputs]).bytes


@pytest.mark.exhaustive
@pytest.mark.skipif(_missing("onnx", "tf2onnx", "onnxruntime") is not None, reason="the ONNX tools are not installed")
@pytest.mark.parametrize("seed", [0, 1, 5])  # zero points are alike by chance: in the first and the last
def test_the_onnx_file_computes_what_was_trained(inputs, seed, tmp_path):
    import keras

    keras.utils.set_random_seed(seed)
    rounded = flatout.quantize(shaken(mobile()), inputs).model
    written = onnx_qdq.write(rounded, tmp_path / "a.onnx", [inputs])
    assert written.apart < 1
    assert written.alike > 0.95
    if _missing("openvino") is None:
        found = onnx_qdq.open_with_openvino(tmp_path / "a.onnx")([inputs])
        litert.check_file(tmp_path / "a.onnx", checks.outputs(rounded, [inputs]), found, 1)


@pytest.mark.skipif(_missing("onnx") is not None, reason="onnx is not installed")
def test_no_two_pairs_of_an_onnx_file_share_a_scale_or_a_zero_point():
    from onnx import TensorProto, helper, numpy_helper

    names = ("a", "a_int", "b", "b_int", "c")
    nodes = [
        helper.make_node(kind, [before, "scale", "zero"], [after])
        for kind, before, after in zip(["QuantizeLinear", "DequantizeLinear"] * 2, names, names[1:], strict=False)
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("a", "c")]
    constants = {"scale": np.float32(0.5), "zero": np.uint8(3)}
    stored = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    proto = helper.make_model(helper.make_graph(nodes, "pairs", ends[:1], ends[1:], stored))

    onnx_qdq.separate_ranges(proto)

    used = [name for node in proto.graph.node for name in node.input[1:]]
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    assert len(set(used)) == 8
    assert [values[name].item() for name in used] == [0.5, 3] * 4
