"""The models that benchmarks/optimize.py serves, each with a task that it really solves.

    python benchmarks/_optimize_models.py NAME DIRECTORY      writes model.keras, data.npz and test.npz

Trained weights cannot be shipped here, and random ones would make every accuracy meaningless. So each network is a
random feature extractor whose head is fitted to the labels by least squares: it classifies well, and an artefact that
computes something else is found out. The convolutional ones learn their features first, on small pictures, which is a
matter of minutes: deep random ones make much of small differences, and quantization would cost them too much.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

CLASSES, SAMPLES = 8, 256
"""So many in data.npz, which quantizers and flatout may see, and in test.npz, which none of them does; the head was
fitted to as many others."""
SMALL, STEPS = 56, 200
"""Size of the pictures that convolutional networks learn on, and batches of 16 of them."""

Array = np.ndarray[Any, Any]


def images(labels: Array, rng: np.random.Generator, size: int = 224) -> Array:
    """Every class has a colour and a coarse pattern of its own, the same ones in all sizes; noise lies over it."""
    patterns = np.random.default_rng(3).uniform(-0.3, 0.3, (CLASSES, 7, 7, 3)).repeat(size // 7, 1).repeat(size // 7, 2)
    patterns += np.array([[(number >> bit & 1) - 0.5 for bit in range(3)] for number in range(CLASSES)])[:, None, None]
    noise = rng.normal(0, 0.1, (len(labels), size // 4, size // 4, 3)).repeat(4, 1).repeat(4, 2)
    return (patterns[labels] + noise).astype(np.float32)


def tokens(labels: Array, rng: np.random.Generator, length: int = 128, vocabulary: int = 8000) -> Array:
    """A fifth of the words is drawn from those of the class."""
    common = rng.integers(0, vocabulary, (len(labels), length))
    own = labels[:, None] * 20 + rng.integers(0, 20, (len(labels), length))
    return np.where(rng.random(common.shape) < 0.2, own, common).astype(np.int32)


def series(labels: Array, rng: np.random.Generator, length: int = 100, width: int = 32) -> Array:
    """Waves whose frequency tells the class."""
    phase = rng.uniform(0, 2 * np.pi, (len(labels), 1, width))
    time = np.arange(length)[None, :, None]
    waves = np.sin(phase + time * (labels[:, None, None] + 1) * 0.15)
    return (waves + rng.normal(0, 0.3, waves.shape)).astype(np.float32)


def points(labels: Array, rng: np.random.Generator, width: int = 256) -> Array:
    centres = rng.normal(0, 0.5, (CLASSES, width))
    return (centres[labels] + rng.normal(0, 1, (len(labels), width))).astype(np.float32)


def mobilenet(input_shape: tuple[int, int, int] = (224, 224, 3)) -> Any:
    import keras

    return keras.applications.MobileNetV2(
        input_shape=input_shape, weights=None, classes=CLASSES, classifier_activation=None
    )


def resnet(input_shape: tuple[int, int, int] = (224, 224, 3)) -> Any:
    import keras

    return keras.applications.ResNet50(
        input_shape=input_shape, weights=None, classes=CLASSES, classifier_activation=None
    )


def encoder(width: int = 256, heads: int = 4, depth: int = 4) -> Any:
    import keras
    from keras import layers

    words = keras.Input((128,), dtype="int32")
    positions = keras.ops.cumsum(keras.ops.ones_like(words), axis=-1) - 1
    x = layers.Embedding(8000, width)(words) + layers.Embedding(128, width)(positions)
    for _ in range(depth):
        y = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(heads, width // heads)(y, y)
        y = layers.LayerNormalization()(x)
        x = x + layers.Dense(width)(layers.Dense(4 * width, activation="gelu")(y))
    pooled = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))
    return keras.Model(words, layers.Dense(CLASSES)(pooled))


def lstm() -> Any:
    import keras
    from keras import layers

    return keras.Sequential([keras.Input((100, 32)), layers.LSTM(128), layers.Dense(CLASSES)])


def mlp() -> Any:
    import keras
    from keras import layers

    hidden = [layers.Dense(1024, activation="relu") for _ in range(3)]
    return keras.Sequential([keras.Input((256,)), *hidden, layers.Dense(CLASSES)])


MODELS: dict[str, tuple[Callable[..., Any], Callable[..., Array]]] = {
    "mobilenet": (mobilenet, images),
    "resnet": (resnet, images),
    "encoder": (encoder, tokens),
    "lstm": (lstm, series),
    "mlp": (mlp, points),
}


def learn(build: Callable[..., Any], model: Any) -> None:
    """A few hundred steps on pictures of a sixteenth of the area: kernels do not depend on the size."""
    import keras

    small = build(input_shape=(SMALL, SMALL, 3))
    small.compile(
        keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(2e-3, STEPS)),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    labels = np.random.default_rng(8).integers(0, CLASSES, 16 * STEPS)
    small.fit(images(labels, np.random.default_rng(9), SMALL), labels, batch_size=16, verbose=0)
    model.set_weights(small.get_weights())


def settle_normalisations(model: Any, inputs: Array) -> None:
    """One pass in which every batch normalisation takes over the statistics of this batch."""
    import keras

    layers = [layer for layer in model.layers if isinstance(layer, keras.layers.BatchNormalization)]
    kept = [layer.momentum for layer in layers]
    for layer in layers:
        layer.momentum = 0.0
    model(inputs, training=True)
    for layer, momentum in zip(layers, kept, strict=True):
        layer.momentum = momentum


def fit_head(model: Any, inputs: Array, labels: Array) -> None:
    """Ridge regression of the one-hot labels on what the last layer sees."""
    import keras

    below = keras.Model(model.inputs, model.layers[-1].input)
    features = np.concatenate([np.asarray(below(inputs[i : i + 32])) for i in range(0, len(inputs), 32)])
    mean, spread = features.mean(0), features.std(0).mean() + 1e-9
    scaled = (features - mean) / spread
    wanted = 8.0 * np.eye(CLASSES)[labels]
    inverse = np.linalg.solve(scaled @ scaled.T + 3.0 * len(scaled) * np.eye(len(scaled)), wanted - wanted.mean(0))
    kernel = scaled.T @ inverse / spread
    model.layers[-1].set_weights([kernel, wanted.mean(0) - mean @ kernel])


def write(name: str, directory: Path) -> None:
    import keras

    keras.utils.set_random_seed(7)
    rng = np.random.default_rng(7)
    build, draw = MODELS[name]
    labels = rng.integers(0, CLASSES, 3 * SAMPLES)
    inputs = draw(labels, rng)
    model = build()
    if draw is images:
        learn(build, model)
    settle_normalisations(model, inputs[:32])
    fit_head(model, inputs[:SAMPLES], labels[:SAMPLES])
    model.save(directory / "model.keras")
    for part, name in enumerate(("data", "test"), start=1):
        rows = slice(part * SAMPLES, (part + 1) * SAMPLES)
        np.savez(directory / f"{name}.npz", x=inputs[rows], y=labels[rows])


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]))
