"""What the benchmark of compression works on: Fashion-MNIST, a residual net, a MobileNet of small pictures."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PLACES = ("/usr/share/datasets/fashion-mnist", "~/.keras/datasets/fashion-mnist")
"""Where Debian's package dataset-fashion-mnist and Keras put it."""


class Data:
    """50,000 pictures and their mirror images to train on, 10,000 to look at, 10,000 that only the last table sees."""

    def __init__(self, place: str | None, samples: int = 50000) -> None:
        places = [Path(p).expanduser() for p in ((place,) if place else PLACES)]
        found = next((p for p in places if (p / "train-images-idx3-ubyte.gz").exists()), None)
        if found is None:
            raise SystemExit("Fashion-MNIST is not there: apt install dataset-fashion-mnist, or --data DIRECTORY.")
        pictures, labels = _read(found, "train-images-idx3"), _read(found, "train-labels-idx1")
        order = np.random.default_rng(0).permutation(len(pictures))
        train = order[: min(samples, 50000)]
        self.x = np.concatenate([pictures[train], pictures[train][:, :, ::-1]])
        self.y = np.concatenate([labels[train], labels[train]])
        self.validation = (pictures[order[50000:]], labels[order[50000:]])
        self.test = (_read(found, "t10k-images-idx3"), _read(found, "t10k-labels-idx1"))
        rest = order[len(train) :]
        self.unseen = (np.concatenate([pictures[rest], self.test[0]]), np.concatenate([labels[rest], self.test[1]]))
        """All that is not trained on, for what chooses nothing by the validation pictures either."""


def _read(place: Path, name: str) -> Any:
    with gzip.open(place / f"{name}-ubyte.gz") as file:
        raw = file.read()
    if "labels" in name:
        return np.frombuffer(raw, np.uint8, offset=8).astype("int32")
    return (np.frombuffer(raw, np.uint8, offset=16).reshape(-1, 28, 28, 1) / np.float32(255)).astype("float32")


def residual() -> Any:
    import keras
    from keras import layers

    inputs = keras.Input((28, 28, 1), name="picture")
    x = layers.Conv2D(32, 3, padding="same", use_bias=False)(inputs)
    x = layers.ReLU()(layers.BatchNormalization(momentum=0.95)(x))
    for filters in (32, 64, 128):
        for block in range(2):
            stride = 2 if filters > 32 and block == 0 else 1
            y = layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
            y = layers.ReLU()(layers.BatchNormalization(momentum=0.95)(y))
            y = layers.Conv2D(filters, 3, padding="same", use_bias=False)(y)
            y = layers.BatchNormalization(momentum=0.95)(y)
            if x.shape[-1] != filters:
                x = layers.Conv2D(filters, 1, strides=stride, use_bias=False)(x)
                x = layers.BatchNormalization(momentum=0.95)(x)
            x = layers.ReLU()(layers.Add()([x, y]))
    x = layers.Dropout(0.3)(layers.GlobalAveragePooling2D()(x))
    return keras.Model(inputs, layers.Dense(10, activation="softmax")(x), name="residual")


def mobile() -> Any:
    """Inverted bottlenecks as in MobileNetV2, for pictures of 28 × 28."""
    import keras
    from keras import layers

    def norm(x: Any) -> Any:
        return layers.BatchNormalization(momentum=0.95)(x)

    inputs = keras.Input((28, 28, 1), name="picture")
    x = layers.ReLU(6.0)(norm(layers.Conv2D(32, 3, padding="same", use_bias=False)(inputs)))
    for filters, stride in ((24, 1), (24, 1), (40, 2), (40, 1), (80, 2), (80, 1), (80, 1)):
        y = layers.ReLU(6.0)(norm(layers.Conv2D(x.shape[-1] * 6, 1, use_bias=False)(x)))
        y = layers.DepthwiseConv2D(3, strides=stride, padding="same", use_bias=False)(y)
        y = layers.ReLU(6.0)(norm(y))
        y = norm(layers.Conv2D(filters, 1, use_bias=False)(y))
        x = layers.Add()([x, y]) if stride == 1 and x.shape[-1] == filters else y
    x = layers.ReLU(6.0)(norm(layers.Conv2D(320, 1, use_bias=False)(x)))
    x = layers.Dropout(0.3)(layers.GlobalAveragePooling2D()(x))
    return keras.Model(inputs, layers.Dense(10, activation="softmax")(x), name="mobile")


KINDS: dict[str, Callable[[], Any]] = {"residual": residual, "mobile": mobile}


def trainer(data: Data, epochs: int, rate: float, batch: int = 1024) -> Callable[..., None]:
    """A `train(model)` as a user would write it: one rate that falls to nothing over the given epochs."""
    epochs = max(1, round(epochs * float(os.environ.get("EPOCHS", "1"))))

    def train(model: Any, callbacks: Any = ()) -> None:
        import keras

        steps = epochs * -(-len(data.x) // batch)
        model.compile(
            keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(rate, steps, alpha=0.01)),
            loss="sparse_categorical_crossentropy",
            metrics=["accuracy"],
        )
        model.fit(data.x, data.y, batch_size=batch, epochs=epochs, callbacks=list(callbacks), verbose=0)

    return train
