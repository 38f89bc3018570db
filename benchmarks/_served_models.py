"""Models that other people made, each with how it is made here, for benchmarks/models.py.

    python benchmarks/_served_models.py NAME DIRECTORY [PACKAGES]

writes `data.npz` and `model.json` (what `flatout optimize` is given, and how the original is opened without flatout)
into the directory. PACKAGES is where `pip install --target` has put the packages of PyPI that some need. Those of
keras.applications get random weights and statistics of batch normalisation that are not those of a new layer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SAMPLES = 96
SIDE = 96


@dataclass(frozen=True)
class Served:
    make: Callable[[Path, Path], dict[str, Any]]
    """Takes the directory and that of the packages; returns `model`, `options`, `original`, and `arrays`."""
    package: str = ""
    """Of PyPI, installed with `pip install --no-deps --target`."""


def application(name: str, **options: Any) -> Served:
    def make(directory: Path, packages: Path) -> dict[str, Any]:
        import keras
        import numpy as np

        keras.utils.set_random_seed(3)
        rng = np.random.default_rng(3)
        shape = options.get("input_shape", (SIDE, SIDE, 3))
        model = getattr(keras.applications, name)(**{"weights": None, "input_shape": shape, **options})
        for layer in model.layers:
            if isinstance(layer, keras.layers.BatchNormalization):
                layer.set_weights([_statistic(rng, one) for one in layer.weights])
        model.save(directory / "model.keras")
        pictures = rng.uniform(0, 255, (SAMPLES, SIDE, SIDE, 3)).astype("float32")
        return {"model": str(directory / "model.keras"), "original": "keras", "arrays": {"x": pictures}}

    return Served(make)


def _statistic(rng: Any, weight: Any) -> Any:
    centre, spread = (1.0, 0.1) if weight.name in ("gamma", "moving_variance") else (0.0, 0.1)
    return abs(rng.normal(centre, spread, weight.shape)) if centre else rng.normal(centre, spread, weight.shape)


def basic_pitch(directory: Path, packages: Path) -> dict[str, Any]:
    import numpy as np

    rng, time = np.random.default_rng(3), np.arange(43844) / 22050
    tones = [
        np.sin(2 * np.pi * pitch * time) * 0.5 + rng.normal(0, 0.02, time.size) for pitch in rng.uniform(80, 1500, 64)
    ]
    model = packages / "basic_pitch/saved_models/icassp_2022/nmp"
    return {"model": str(model), "original": "saved_model", "arrays": {"x": np.float32(tones)[..., None]}}


def guesslang(directory: Path, packages: Path) -> dict[str, Any]:
    import numpy as np

    texts = [
        "def f(x):\n    return x + %d",
        "#include <stdio.h>\nint main() { return %d; }",
        "SELECT * FROM t WHERE a = %d;",
    ]
    words = [texts[i % 3] % i for i in range(SAMPLES)] + ["Köln", "", "日本語"]
    return {
        "model": str(packages / "guesslang/data/model"),
        "original": "saved_model",
        "arrays": {"x": np.array(words)},
    }


def spliceai(directory: Path, packages: Path) -> dict[str, Any]:
    import numpy as np

    bases = np.eye(4, dtype="float32")[np.random.default_rng(3).integers(0, 4, (48, 10101))]
    return {"model": str(packages / "spliceai/models/spliceai1.h5"), "original": "keras", "arrays": {"x": bases}}


def mtcnn(stage: str, height: int, width: int) -> Served:
    def make(directory: Path, packages: Path) -> dict[str, Any]:
        import numpy as np

        if not (packages / "mtcnn").exists():
            raise SystemExit("mtcnn is not there")
        (directory / "made.py").write_text(MTCNN.format(packages=str(packages), stage=stage, lower=stage.lower()))
        pictures = np.random.default_rng(3).uniform(-1, 1, (SAMPLES, height, width, 3)).astype("float32")
        options = ["--import", "mtcnn"]
        return {"model": "made:make", "options": options, "original": "made:make", "arrays": {"x": pictures}}

    return Served(make, "mtcnn joblib lz4")


MTCNN = """\
import sys

sys.path.append({packages!r})


def make():
    import joblib
    import mtcnn
    from pathlib import Path
    from mtcnn.network.{lower} import {stage}

    model = {stage}()
    model.build()
    model.set_weights(joblib.load(Path(mtcnn.__file__).parent / "assets/weights/{lower}.lz4"))
    return model
"""

MODELS: dict[str, Served] = {
    "pnet": mtcnn("PNet", 48, 64),
    "rnet": mtcnn("RNet", 24, 24),
    "onet": mtcnn("ONet", 48, 48),
    "basic-pitch": Served(basic_pitch, "basic-pitch"),
    "guesslang": Served(guesslang, "guesslang"),
    "spliceai": Served(spliceai, "spliceai"),
    "mobilenet": application("MobileNet"),
    "mobilenet-v2-any-size": application(
        "MobileNetV2", input_shape=(None, None, 3), include_top=False, pooling="avg", alpha=0.35
    ),
    "mobilenet-v3-small": application("MobileNetV3Small"),
    "efficientnet-b0": application("EfficientNetB0"),
    "efficientnet-v2-b0": application("EfficientNetV2B0"),
    "nasnet-mobile": application("NASNetMobile"),
    "densenet-121": application("DenseNet121"),
    "xception": application("Xception"),
    "resnet-50-v2": application("ResNet50V2"),
    "inception-v3": application("InceptionV3"),
    "convnext-tiny": application("ConvNeXtTiny"),
}


def main(name: str, directory: Path, packages: Path) -> None:
    import numpy as np

    directory.mkdir(parents=True, exist_ok=True)
    made = MODELS[name].make(directory, packages)
    arrays = made.pop("arrays")
    np.savez(directory / "data.npz", **arrays)
    (directory / "model.json").write_text(json.dumps({"options": [], **made}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).resolve(), Path(sys.argv[3] if len(sys.argv) > 3 else ".").resolve())
