"""Magnitude pruning and int8 training beside TensorFlow's Model Optimization toolkit: the same net, weights and epochs.

    pip install --no-deps tensorflow-model-optimization dm-tree
    python benchmarks/tfmot.py [--seeds 3] [--first 0] [--only int8] [--constant]

The toolkit knows Keras 2 alone, so that it gets a twin of the net in tf_keras with the same weights. Both train on with
Adam, the same rates (which fall to zero; with --constant they do not, as in `compile("adam")`), batch and epochs; int8
is judged by the LiteRT file that each of them writes. Accuracies are those on the 60,000 pictures of Fashion-MNIST that
nothing is trained on or chosen by. Two trainings of one net differ by a tenth of a point by chance: the mean of some
seeds stands with its standard error.
"""

from __future__ import annotations

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # for the toolkit: tf.keras is tf_keras then, `keras` stays Keras 3

import argparse
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from _compress_setting import Data

import flatout

KINDS = ("sparse", "int8")
SPARSITY = 0.8
RATE, BATCH = 1e-3, 128
FLOAT_EPOCHS, SPARSE_EPOCHS, INT8_EPOCHS = 6, 4, 2


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--data", help="directory of the four files of Fashion-MNIST")
    arguments.add_argument("--samples", type=int, default=10000, help="pictures to train on, and their mirror images")
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--first", type=int, default=0, help="the first of them")
    arguments.add_argument("--only", choices=KINDS, help="one of the two comparisons")
    arguments.add_argument("--constant", action="store_true", help="train on with a learning rate that does not fall")
    given = arguments.parse_args()
    if find_spec("tensorflow_model_optimization") is None:
        raise SystemExit("tfmot is not there: pip install --no-deps tensorflow-model-optimization dm-tree")
    data = Data(given.data, given.samples)
    kinds = (given.only,) if given.only else KINDS
    rows = []
    for seed in range(given.first, given.first + given.seeds):
        rows.append(row := Pair(data, seed, given.constant).measured(kinds))
        print(f"seed {seed}:  " + "  ".join(f"{name} {value:.4f}" for name, value in row.items()), flush=True)
    for kind in kinds:
        gaps = [100 * (row[f"{kind} ours"] - row[f"{kind} tfmot"]) for row in rows]
        error = f" ± {np.std(gaps, ddof=1) / len(gaps) ** 0.5:.2f}" if len(gaps) > 1 else ""
        print(f"{kind}: ours {np.mean(gaps):+.2f}{error} points ({', '.join(f'{gap:+.2f}' for gap in gaps)})")


class Pair:
    """One trained net, taken on by both."""

    def __init__(self, data: Data, seed: int, constant: bool) -> None:
        import keras
        import tf_keras

        self.data, self.seed, self.constant = data, seed, constant
        keras.utils.set_random_seed(seed)
        self.float = _compiled(keras, _net(keras), self.steps(FLOAT_EPOCHS))
        self.float.fit(**self.fitting(FLOAT_EPOCHS))
        self.twin = _net(tf_keras)
        for ours, theirs in zip(self.float.layers, self.twin.layers, strict=True):
            theirs.set_weights(ours.get_weights())
        apart = np.abs(self.float.predict(data.x[:64], verbose=0) - self.twin.predict(data.x[:64], verbose=0)).max()
        if apart > 1e-4:
            raise SystemExit(f"The twin in tf_keras differs by {apart:.1g}.")

    def fitting(self, epochs: int) -> dict[str, Any]:
        return {"x": self.data.x, "y": self.data.y, "batch_size": BATCH, "epochs": epochs, "verbose": 0}

    def steps(self, epochs: int) -> int:
        return epochs * -(-len(self.data.x) // BATCH)

    def ready(self, epochs: int) -> Any:
        """The float model, compiled for so many epochs: what is made of it is compiled like it."""
        import keras

        return self.compiled(keras, self.float, epochs)

    def compiled(self, kit: Any, model: Any, epochs: int) -> Any:
        return _compiled(kit, model, None if self.constant else self.steps(epochs))

    def measured(self, kinds: tuple[str, ...]) -> dict[str, float]:
        row = {"float": self.right(self.float.predict(self.data.unseen[0], batch_size=500, verbose=0))}
        for kind in kinds:
            for who in ("ours", "tfmot"):
                row.update(getattr(self, f"{kind}_{who}")())
        return row

    def right(self, answers: Any) -> float:
        labels = self.data.unseen[1]
        return float((np.asarray(answers)[: len(labels)].argmax(-1) == labels).mean())

    def sparse_ours(self) -> dict[str, float]:
        start, train = self.ready(SPARSE_EPOCHS), self.fitting(SPARSE_EPOCHS)
        model = flatout.prune(start, sparsity=SPARSITY, train=train, seed=self.seed).model
        answers = model.predict(self.data.unseen[0], batch_size=500, verbose=0)
        return {"sparse ours": self.right(answers), "zeros ours": _zeros(model)}

    def sparse_tfmot(self) -> dict[str, float]:
        import tensorflow_model_optimization as tfmot
        import tf_keras

        kit = tfmot.sparsity.keras
        steps = self.steps(SPARSE_EPOCHS)
        schedule = kit.PolynomialDecay(0.0, SPARSITY, begin_step=0, end_step=steps * 3 // 4, frequency=10)
        copy = tf_keras.models.clone_model(self.twin)
        copy.set_weights(self.twin.get_weights())
        model = self.compiled(tf_keras, kit.prune_low_magnitude(copy, pruning_schedule=schedule), SPARSE_EPOCHS)
        tf_keras.utils.set_random_seed(self.seed)
        model.fit(**self.fitting(SPARSE_EPOCHS), callbacks=[kit.UpdatePruningStep()])
        model = kit.strip_pruning(model)
        answers = model.predict(self.data.unseen[0], batch_size=500, verbose=0)
        return {"sparse tfmot": self.right(answers), "zeros tfmot": _zeros(model)}

    def int8_ours(self) -> dict[str, float]:
        from flatout.optimize.compress import litert

        start, train = self.ready(INT8_EPOCHS), self.fitting(INT8_EPOCHS)
        model = flatout.quantize(start, self.data.x[:1024], train=train, seed=self.seed).model
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "int8.tflite"
            litert.write(model, file, [self.data.x[:256]])
            return {"int8 ours": self.right(self.run(file))}

    def int8_tfmot(self) -> dict[str, float]:
        import tensorflow as tf
        import tensorflow_model_optimization as tfmot
        import tf_keras

        model = self.compiled(tf_keras, tfmot.quantization.keras.quantize_model(self.twin), INT8_EPOCHS)
        tf_keras.utils.set_random_seed(self.seed)
        model.fit(**self.fitting(INT8_EPOCHS))
        converter = tf.lite.TFLiteConverter.from_keras_model(model)
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        with tempfile.TemporaryDirectory() as place:
            file = Path(place) / "int8.tflite"
            file.write_bytes(converter.convert())
            return {"int8 tfmot": self.right(self.run(file))}

    def run(self, file: Path) -> Any:
        from flatout.optimize.compress import litert

        pictures = self.data.unseen[0]
        whole = np.concatenate([pictures, pictures[: -len(pictures) % 64]])  # whole batches
        return litert.run_file(file, [whole])[0][0]


def _net(kit: Any) -> Any:
    """A small convolutional net of what both kits can do; `kit` is keras or tf_keras."""
    layers = kit.layers
    inputs = kit.Input((28, 28, 1))
    x = inputs
    for filters, stride in ((16, 1), (32, 2), (64, 2)):
        x = layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization(momentum=0.95)(x))
    x = layers.Dense(64, activation="relu")(layers.Flatten()(x))
    return kit.Model(inputs, layers.Dense(10, activation="softmax")(x))


def _compiled(kit: Any, model: Any, steps: int | None) -> Any:
    rate = kit.optimizers.schedules.CosineDecay(RATE, steps) if steps else RATE
    model.compile(kit.optimizers.Adam(rate), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def _zeros(model: Any) -> float:
    kernels = [np.asarray(weight) for weight in model.get_weights() if np.ndim(weight) > 1]
    return float(sum((kernel == 0).sum() for kernel in kernels) / sum(kernel.size for kernel in kernels))


if __name__ == "__main__":
    main()
