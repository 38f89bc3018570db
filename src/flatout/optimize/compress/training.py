"""Trains models: with the user's own `train(model)`, or with `fit` and the arguments that the user gives.

Results are written to `checkpoint` after each stage, and within a `fit` after each epoch; a later run with the same
model and settings continues there. A loss that is not a number ends the training with an error. The user's model is
never changed.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flatout.model.errors import CompressionFailed, CompressionRefused
from flatout.optimize.compress import progress
from flatout.optimize.compress.averages import averaged

Train = Callable[..., Any] | Mapping[str, Any]
"""A function that trains the model it is given, or the arguments of `fit`: {"x": …, "y": …, "epochs": 3}."""


class Journal:
    """The finished stages, kept in a directory. Without a directory nothing is kept."""

    def __init__(
        self, directory: str | os.PathLike[str] | None, model: Any, settings: Any, train: Train | None = None
    ) -> None:
        self.directory = Path(directory) if directory is not None else None
        if self.directory is None:
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        identity = {"work": fingerprint(model, settings if train is None else [settings, identity_of(train)])}
        file = self.directory / "work.json"
        if file.exists() and json.loads(file.read_text()) != identity:
            raise CompressionRefused(
                f"{self.directory} has the checkpoints of another model or of other settings, the training among them. "
                "Give another directory, or remove it to start over."
            )
        file.write_text(json.dumps(identity))

    def decide(self, stage: str, decide: Callable[[], frozenset[int]]) -> frozenset[int]:
        """The decision of a stage, kept because a repeated measurement would differ."""
        if self.directory is None:
            return decide()
        file = self.directory / f"{stage}.json"
        if not file.exists():
            unfinished = file.with_suffix(".unfinished")
            unfinished.write_text(json.dumps(sorted(decide())))
            unfinished.replace(file)
        return frozenset(json.loads(file.read_text()))

    def train(self, stage: str, model: Any, train: Callable[[Path | None], Any]) -> bool:
        """Train, or load what an earlier run has trained at this stage. Returns whether it was loaded."""
        if self.directory is None:
            train(None)
            return False
        file = self.directory / f"{stage}.npz"
        if file.exists():
            with np.load(file, allow_pickle=False) as kept:
                for number, variable in enumerate(model.variables):
                    variable.assign(kept[f"v{number}"].astype(variable.dtype))
            return True
        inner = self.directory / f"{stage}.epochs"
        train(inner)
        arrays = {f"v{number}": as_array(variable) for number, variable in enumerate(model.variables)}
        unfinished = file.with_suffix(".unfinished.npz")
        np.savez(unfinished, **arrays)
        unfinished.replace(file)  # atomic: a kill leaves a complete file or none
        shutil.rmtree(inner, ignore_errors=True)
        return False


def run(
    train: Train,
    model: Any,
    *,
    task: str,
    seed: int | None = None,
    callbacks: Sequence[Any] = (),
    backup: Path | None = None,
) -> None:
    """Train a model."""
    import keras

    if seed is not None:
        keras.utils.set_random_seed(seed)
    watch = keras.callbacks.TerminateOnNaN()
    ours = [*callbacks, watch, progress.callback(task)]
    if isinstance(train, Mapping):
        if not model.compiled:
            raise CompressionRefused(
                "The model is not compiled, so `fit` does not know its loss. Compile it first, "
                "or give train= a function that compiles and trains the model it is given."
            )
        arguments = {"verbose": 0, **train}
        given = arguments.pop("callbacks", None) or []
        if backup is not None:
            ours.append(keras.callbacks.BackupAndRestore(str(backup)))
        with averaged(model):
            model.fit(**arguments, callbacks=[*given, *ours])
    elif callable(train):
        names = inspect.signature(train).parameters
        with averaged(model):
            answer = train(model, callbacks=ours) if "callbacks" in names else train(model)
        if isinstance(answer, keras.Model) and answer is not model:
            model.set_weights(answer.get_weights())
    else:
        raise CompressionRefused("train= is a function train(model) or a dictionary of arguments for fit.")
    broken = next((v.path for v in model.trainable_variables if not np.isfinite(as_array(v)).all()), None)
    if broken is not None:
        raise CompressionFailed(
            f"{task}: the weights {broken} became NaN or infinite. Lower the learning rate. The original is unchanged."
        )


def loss_on(data: Any, batch_size: int = 64) -> Callable[[Any], float]:
    """The loss of a compiled model on data that `evaluate` takes: (x, y), or a dataset."""

    def loss(model: Any) -> float:
        if not model.compiled:
            raise CompressionRefused("The model is not compiled, so it has no loss to measure. Compile it first.")
        if isinstance(data, tuple):
            answer = model.evaluate(*data, batch_size=batch_size, verbose=0, return_dict=True)
        else:
            answer = model.evaluate(data, verbose=0, return_dict=True)
        return float(answer["loss"])

    return loss


def as_array(variable: Any) -> Any:
    value = np.asarray(variable.numpy())
    return value.astype(np.float32) if value.dtype.kind == "V" or value.dtype.name == "bfloat16" else value


def identity_of(train: Train) -> str:
    """The same for the same training in another process: the source of a function, the arguments of `fit`."""
    if isinstance(train, Mapping):
        told: list[Any] = [[name, _plain(train[name])] for name in sorted(train)]
    else:
        function = inspect.unwrap(getattr(train, "func", train))  # of functools.partial
        code = getattr(function, "__code__", None)
        try:
            told = [inspect.getsource(function if code is not None else type(function))]
        except (OSError, TypeError):
            told = [code.co_code.hex(), _plain(code.co_consts)] if code is not None else []
        told += [getattr(function, "__qualname__", type(function).__qualname__)]
        told += [_plain(value) for value in getattr(train, "args", ())]
        told += [[name, _plain(value)] for name, value in sorted((getattr(train, "keywords", None) or {}).items())]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.ndarray) and value.dtype != object:
        return [value.shape, str(value.dtype), hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()]
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return type(value).__qualname__  # an address would be another one in each process


def fingerprint(model: Any, settings: Any) -> str:
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for variable in model.weights:  # without the states of random generators, which differ each time a model is loaded
        digest.update(variable.path.encode())
        digest.update(np.ascontiguousarray(as_array(variable)).tobytes())
    return digest.hexdigest()
