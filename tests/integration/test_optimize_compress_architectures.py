"""Channels out of architectures as they are published: they run, train, save, load, and export."""

import importlib.util

import numpy as np
import pytest
from compress_models import shaken, transformer, two_inputs, unet
from test_optimize_compress_prune import some_units

from flatout.optimize.compress import checks, float_files
from flatout.optimize.compress.prune import remove
from flatout.optimize.compress.structure.channels import follow

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]

NAMES = (
    *(
        "MobileNetV2",
        "ResNet50",
        "DenseNet121",
        "EfficientNetB0",
        "MobileNetV3Small",
        "ResNet50V2",
        "VGG16",
        "Xception",
    ),
    *("InceptionV3", "ConvNeXtTiny", "EfficientNetV2B0", "NASNetMobile", "InceptionResNetV2", "MobileNet"),
)


OWN = {"U-Net": unet, "encoder": transformer, "two inputs": two_inputs}


def application(name):
    import keras

    size = 96 if "Inception" in name or name == "Xception" else 64
    return getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), classes=7)


@pytest.mark.parametrize("name", NAMES)
def test_round_trip(name, tmp_path):
    import keras

    model = shaken(application(name), seed=1)
    known = follow(model)
    assert known.groups, known.held
    smaller, check = remove(known, some_units(known, 0.3))
    assert check.passed
    assert smaller.count_params() < 0.9 * model.count_params()
    smaller.compile("sgd", "sparse_categorical_crossentropy", jit_compile=False)
    inputs = checks.samples(model)
    assert np.isfinite(smaller.train_on_batch(inputs[0], np.arange(len(inputs[0])) % 7))
    smaller.save(tmp_path / "smaller.keras")
    again = keras.saving.load_model(tmp_path / "smaller.keras")
    (one,), (other,) = checks.outputs(smaller, inputs), checks.outputs(again, inputs)
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [*NAMES[:4], *OWN])
def test_export(name, tmp_path):
    for package in ("ai_edge_litert", "onnx", "tf2onnx", "onnxruntime", "openvino"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    from flatout.optimize.compress import onnx_qdq

    model = OWN[name]() if name in OWN else application(name)
    known = follow(model)
    smaller, _ = remove(known, some_units(known, 0.3))
    inputs = checks.samples(model)
    float_files.write_litert(smaller, tmp_path / "a.tflite", inputs)
    float_files.write_onnx(smaller, tmp_path / "a.onnx", inputs)
    found = onnx_qdq.open_with_openvino(tmp_path / "a.onnx")(inputs)
    checks.expect_equal("OpenVINO", checks.outputs(smaller, inputs), found, 1e-3)
