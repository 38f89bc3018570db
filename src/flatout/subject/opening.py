"""Opens the model that the user named, whatever its format."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from flatout.model.errors import ModelRefused
from flatout.subject import keras_models, saved_models
from flatout.subject.original import Original, import_module, import_object


def open_original(
    model: str, *, trust: bool = False, imports: Sequence[str] = (), signature: str | None = None
) -> Original:
    """Open a Keras file, an H5 file, the directory of a SavedModel, a frozen graph (`.pb`), or `module:function`."""
    path = Path(model)
    if not path.exists():
        if ":" in model and os.sep not in model:
            return keras_models.wrap_model(
                import_object(model)(), {"how": "factory", "name": model, "where": os.getcwd()}
            )
        raise ModelRefused(
            f"There is no model at {model}. Give a .keras or .h5 file, the directory of a SavedModel, a frozen graph "
            "(.pb), or `module:function` for a function that builds it."
        )
    is_saved_model = path.is_dir() and (path / "saved_model.pb").exists()
    is_graph = path.is_file() and path.suffix == ".pb"
    before = saved_models.registered_operations() if (is_saved_model or is_graph) and imports else frozenset()
    for name in imports:
        import_module(name)
    custom = saved_models.registered_operations() - before if before else frozenset()
    if is_graph:
        if path.name == "saved_model.pb":
            return saved_models.open_directory(path.parent, signature, trust, custom)
        return saved_models.open_graph_file(path, trust, custom)
    if path.is_dir():
        if is_saved_model:
            return saved_models.open_directory(path, signature, trust, custom)
        raise ModelRefused(f"{path} is not a SavedModel: the directory has no saved_model.pb.")
    if path.suffix in (".tflite", ".onnx"):
        raise ModelRefused(
            f"{path} is already converted, and cannot be optimized further. Give the model that it was made from, and "
            f"this file for comparison: flatout optimize MODEL --compare {path}"
        )
    return keras_models.open_file(path, trust, imports)
