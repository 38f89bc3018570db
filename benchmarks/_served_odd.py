"""What an artefact answers to data that nobody had when it was made, beside the original. For benchmarks/models.py.

    python benchmarks/_served_odd.py DIRECTORY ARTEFACT

The original is opened by Keras or TensorFlow alone, the artefact by its own `load.py`. Each case ends as `agrees`,
`refused` (an error where the original answers: in order, when it is said), `both refuse`, or `DIFFERS`, a silent
difference. Written to stdout as JSON.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Arrays = list[Any]
ALIKE = 0.05
"""Largest difference over the largest value: quantized artefacts are told by `flatout optimize` how far they may be."""


def original(directory: Path, made: dict[str, Any], outputs: Sequence[str]) -> Callable[[Arrays], Arrays]:
    import tensorflow as tf

    if made["original"] == "saved_model":
        model = tf.saved_model.load(made["model"])
        signature = model.signatures["serving_default"]
        names = sorted(signature.structured_input_signature[1])
        return lambda arrays: [
            signature(**dict(zip(names, map(tf.constant, arrays), strict=True)))[name].numpy()
            for name in outputs
            if model
        ]
    if made["original"] == "keras":
        import keras

        keras_model = keras.models.load_model(made["model"], compile=False)
    else:
        sys.path.insert(0, str(directory))
        module, _, function = made["original"].partition(":")
        keras_model = getattr(importlib.import_module(module), function)()

    def answer(arrays: Arrays) -> Arrays:
        given = keras_model(arrays[0] if len(arrays) == 1 else arrays, training=False)
        return [np.array(one) for one in (given if isinstance(given, (list, tuple)) else [given])]

    return answer


def cases(samples: Arrays) -> Iterator[tuple[str, Arrays]]:
    for count in (1, 2, 3, 7):
        yield f"batch {count}", [array[:count] for array in samples]
    if samples[0].dtype.kind == "f":
        for name, value in (("nan", np.nan), ("infinity", np.inf)):
            changed = [array[:2].copy() for array in samples]
            changed[0].reshape(2, -1)[0, 3] = value
            yield name, changed
        yield "zeros", [np.zeros_like(array[:2]) for array in samples]
        yield "large", [array[:2] * 1e4 for array in samples]
    if samples[0].dtype.kind == "f" and samples[0].ndim > 2:
        for length in (samples[0].shape[1] // 2, samples[0].shape[1] + 7):
            shape = (1, length, *samples[0].shape[2:])
            yield f"length {length}", [np.resize(samples[0][:1], shape), *(array[:1] for array in samples[1:])]
    if samples[0].dtype.kind in "SU":
        yield "odd strings", [np.array(["", "Köln", "日本語\x00x", "a" * 5000])]
        yield "invalid strings", [np.array([b"\xff\xfeabc", b"x"])]


def outcome(expect: Callable[[Arrays], Arrays], answer: Callable[[Arrays], Arrays], arrays: Arrays) -> str:
    plain = [np.char.encode(one, "utf-8") if one.dtype.kind == "U" else one for one in arrays]
    try:
        expected = expect(plain)
    except Exception:
        expected = []
    try:
        given = [np.asarray(one) for one in answer(arrays)]
    except Exception as error:
        said = " ".join(str(error).split())[:120]
        return f"refused: {said}" if expected else "both refuse"
    if not expected:
        return "DIFFERS: the original refuses it"
    return difference(expected, given) or "agrees"


def difference(expected: Arrays, given: Arrays) -> str:
    for one, other in zip(expected, given, strict=True):
        if one.shape != other.shape:
            return f"DIFFERS: shape {other.shape}, not {one.shape}"
        if one.dtype.kind != "f":
            if not np.array_equal(one, other):
                return "DIFFERS: other values"
            continue
        if not np.array_equal(np.isnan(one), np.isnan(other)) or not np.array_equal(np.isinf(one), np.isinf(other)):
            return "DIFFERS: NaN or infinity in other places"
        finite = np.isfinite(one)
        off = float(np.abs(one[finite] - other[finite]).max(initial=0.0))
        largest = float(np.abs(one[finite]).max(initial=0.0))
        if off > ALIKE * max(largest, 1e-6):
            return f"DIFFERS: by {off:.1e} of {largest:.1e}"
    return ""


def main(directory: Path, artefact: Path) -> None:
    made = json.loads((directory / "model.json").read_text())
    manifest = json.loads((artefact / "manifest.json").read_text())
    specification = importlib.util.spec_from_file_location("load", artefact / "load.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    expect = original(directory, made, [one["name"] for one in manifest["outputs"]])
    answer = module.load(artefact)
    with np.load(directory / "data.npz") as stored:
        samples = [stored[name] for name in stored.files]
    print(json.dumps({name: outcome(expect, answer, arrays) for name, arrays in cases(samples)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
