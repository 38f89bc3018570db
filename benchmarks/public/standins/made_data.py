"""Made data in the forms that Keras and tensorflow_datasets give: learnable, small, the same on every machine.

    python made_data.py DIRECTORY [--full]     files that keras.datasets reads with KERAS_HOME=DIRECTORY

A picture is its class's pattern plus noise; a text draws most of its words from its class's part of the vocabulary.
cifar10 always has 50000 pictures, as Keras reads no other number.
"""

from __future__ import annotations

import argparse
import gzip
import json
import pickle
from pathlib import Path

import numpy as np

PATTERN_SEED = 2_024


def pictures(count, shape=(28, 28), classes=10, seed=0):
    """(uint8 pictures, labels)."""
    rng = np.random.default_rng(seed)
    patterns = np.random.default_rng(PATTERN_SEED).integers(0, 120, (classes, *shape), dtype=np.uint8)
    labels = rng.integers(0, classes, count, dtype=np.uint8)
    noise = rng.integers(0, 100, (count, *shape), dtype=np.uint8)
    return patterns[labels] + noise, labels


def texts(count, words=20_000, classes=2, length=(40, 400), seed=0):
    """(lists of word numbers, labels): low numbers are frequent."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, count)
    lengths = rng.integers(*length, count)
    drawn = (rng.pareto(1.0, lengths.sum()) * 20 + 1).astype(np.int64) % words
    parts = np.split(drawn, np.cumsum(lengths)[:-1])
    rows = np.empty(count, dtype=object)
    for place, (part, label) in enumerate(zip(parts, labels, strict=True)):
        moved = np.where(rng.random(len(part)) < 0.3, part - part % classes + label, part)
        rows[place] = [int(word) + 1 for word in moved]
    return rows, labels


def houses(count, features=13, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, features)) * 10 + 20
    y = np.clip(22 + (x - 20) @ np.linspace(-0.3, 0.3, features) + rng.normal(size=count), 5, 50)
    return x, y


def write(directory: Path, full: bool = False) -> None:
    """The files of keras.datasets, in the form in which Keras keeps them after a download."""
    target = directory / "datasets"
    target.mkdir(parents=True, exist_ok=True)
    train, test = (60_000, 10_000) if full else (6_000, 1_000)
    x, y = pictures(train, seed=1)
    x_test, y_test = pictures(test, seed=2)
    np.savez(target / "mnist.npz", x_train=x, y_train=y, x_test=x_test, y_test=y_test)
    write_fashion(target / "fashion-mnist", (x, y), (x_test, y_test))
    write_cifar(target, train * 5 // 6, test)
    write_texts(target, 25_000 if full else 2_500)
    for name, rows, features in (("boston_housing", 506, 13), ("california_housing", 20_640, 8)):
        x, y = houses(rows, features)
        np.savez(target / f"{name}.npz", x=x, y=y)


def write_fashion(target: Path, train, test) -> None:
    target.mkdir(exist_ok=True)
    for name, (x, y) in (("train", train), ("t10k", test)):
        with gzip.open(target / f"{name}-labels-idx1-ubyte.gz", "wb", 1) as file:
            file.write(bytes(8) + y.tobytes())
        with gzip.open(target / f"{name}-images-idx3-ubyte.gz", "wb", 1) as file:
            file.write(bytes(16) + x.tobytes())


def write_cifar(target: Path, train: int, test: int) -> None:
    ten = target / "cifar-10-batches-py-target" / "cifar-10-batches-py"
    hundred = target / "cifar-100-python-target" / "cifar-100-python"
    for made in (ten, hundred):
        made.mkdir(parents=True, exist_ok=True)
        (target / f"{made.parent.name}_archive").touch()
    for place, name in enumerate([*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]):
        x, y = pictures(test if name == "test_batch" else 10_000, (3, 32, 32), seed=10 + place)
        dump(ten / name, {b"data": x.reshape(len(x), -1), b"labels": y.tolist()})
    for name, count in (("train", train), ("test", test)):
        x, y = pictures(count, (3, 32, 32), classes=100, seed=20 + len(name))
        labels = {b"fine_labels": y.tolist(), b"coarse_labels": (y // 5).tolist()}
        dump(hundred / name, {b"data": x.reshape(len(x), -1), **labels})


def dump(file: Path, data) -> None:
    with file.open("wb") as stream:
        pickle.dump(data, stream, protocol=4)


def write_texts(target: Path, count: int) -> None:
    x, y = texts(count, seed=3)
    x_test, y_test = texts(count, seed=4)
    np.savez(target / "imdb.npz", x_train=x, y_train=y, x_test=x_test, y_test=y_test)
    x, y = texts(count, classes=46, seed=5)
    np.savez(target / "reuters.npz", x=x, y=y)
    for name in ("imdb", "reuters"):
        words = {f"word{number}": number for number in range(1, 20_001)}
        (target / f"{name}_word_index.json").write_text(json.dumps(words))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--full", action="store_true", help="as many rows as the true data sets")
    chosen = parser.parse_args()
    write(chosen.directory, chosen.full)
