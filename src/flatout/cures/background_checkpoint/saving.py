"""What `background-checkpoint` puts into a program: injected as it is, written into the source from the mark on.

Only code that runs in the program imports this module: it imports Keras.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc"

import concurrent.futures
import importlib
import os
import random
from typing import Any

keras: Any = importlib.import_module("keras")

# ── from here on ─────────────────────────────────────────────────────────────────────────────────────────────────────


class BackgroundSaving:
    """A model that is saved beside its training: as it is at the call, one file at a time. A file gets its name when it
    is complete. Where no copy of the model can be made, it is saved as ever."""

    def __init__(self, model):
        self._model = model
        self._copy = None
        self._writer = concurrent.futures.ThreadPoolExecutor(max_workers=1)
        self._writing = None

    def __getattr__(self, name):
        return getattr(self._model, name)

    def save(self, path, overwrite=True):
        self._begin("save", path, overwrite)

    def save_weights(self, path, overwrite=True):
        self._begin("save_weights", path, overwrite)

    def wait(self):
        """Until the last file is complete. Raises what writing it has raised."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def _begin(self, method, path, overwrite):
        self.wait()
        path = os.fspath(path)
        if self._copy is None:
            self._copy = self._copied()
        if not self._copy or "://" in path or not path.endswith((".keras", ".weights.h5")) or os.path.isdir(path):
            getattr(self._model, method)(path, overwrite=overwrite)
            return
        for ours, copied in zip(self._state(self._model), self._state(self._copy), strict=True):
            copied.assign(ours.numpy())
        self._writing = self._writer.submit(self._write, getattr(self._copy, method), os.path.realpath(path))

    def _write(self, save, path):
        part = os.path.join(os.path.dirname(path), f".part-{os.path.basename(path)}")
        save(part, overwrite=True)
        os.replace(part, path)

    def _copied(self):
        """A model with the same layers and optimizer, in the memory of the host; False where it cannot be made, or
        where a layer keeps more than variables: a vocabulary that it has adapted to."""
        if any(hasattr(layer, "save_assets") for layer in self._model._flatten_layers()):
            return False
        drawn = random.getstate()  # new layers draw numbers: the program is to draw what it would have drawn
        try:
            with keras.device("cpu:0"):
                copy = type(self._model).from_config(self._model.get_config())
                if not copy.built:
                    copy.build_from_config(self._model.get_build_config())
                if self._model.compiled:
                    copy.compile_from_config(self._model.get_compile_config())
                    copy.optimizer.build(copy.trainable_variables)
        except Exception:
            return False
        finally:
            random.setstate(drawn)
        ours, copied = ([(v.shape, v.dtype) for v in self._state(one)] for one in (self._model, copy))
        return copy if ours == copied else False

    def _state(self, model):
        """The variables that a file keeps."""
        measured = {id(v) for metric in model.metrics for v in metric.variables}
        trained = model.optimizer.variables if model.compiled else []
        return [v for v in (*model.variables, *trained) if id(v) not in measured]


class BackgroundCheckpoint(keras.callbacks.ModelCheckpoint):
    """A ModelCheckpoint that writes beside the training. When `fit` returns, all is written."""

    def set_model(self, model):
        super().set_model(BackgroundSaving(model))

    def on_train_end(self, logs=None):
        super().on_train_end(logs)
        self.model.wait()
