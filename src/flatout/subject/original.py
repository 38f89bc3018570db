"""Opens the user's model, in whatever form it is given, as a function of tensors."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from flatout.model.errors import ModelRefused, ModelUnusable


@dataclass(frozen=True)
class DeclaredInput:
    """An input as the model declares it."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]


@dataclass
class Original:
    kind: Literal["keras", "tf_keras", "saved_model"]
    call: Callable[[Sequence[Any]], Sequence[Any]]
    """Maps inputs to outputs for inference, both in the model's order."""
    inputs: tuple[DeclaredInput, ...] | None
    """None where the model was never built and does not know its inputs: the data decides."""
    output_names: Callable[[int], Sequence[str]]
    variables: Sequence[Any]
    owner: Any
    """Keeps tables and other resources alive."""
    reopen: dict[str, Any] = field(default_factory=dict)
    """How another process opens the Keras object itself; empty where it cannot."""
    unrolled: Callable[[], AbstractContextManager[bool]] = lambda: contextlib.nullcontext(False)
    """A context in which recurrent layers are traced unrolled; its value is False where there are none."""


def open_original(
    model: str, *, trust: bool = False, imports: Sequence[str] = (), signature: str | None = None
) -> Original:
    """Open a Keras file, an H5 file, the directory of a SavedModel, or `module:function`."""
    from flatout.subject import keras_models, saved_models

    path = Path(model)
    if not path.exists():
        if ":" in model and os.sep not in model:
            return keras_models.wrap_model(
                import_object(model)(), {"how": "factory", "name": model, "where": os.getcwd()}
            )
        raise ModelRefused(
            f"There is no model at {model}. Give a .keras or .h5 file, the directory of a SavedModel, or "
            "`module:function` for a function that builds it."
        )
    for name in imports:
        import_module(name)
    if path.is_dir():
        if (path / "saved_model.pb").exists():
            return saved_models.open_directory(path, signature, trust)
        raise ModelRefused(f"{path} is not a SavedModel: the directory has no saved_model.pb.")
    if path.suffix in (".tflite", ".onnx"):
        raise ModelRefused(
            f"{path} is already converted, and cannot be optimized further. Give the model that it was made from, and "
            f"this file for comparison: flatout optimize MODEL --compare {path}"
        )
    return keras_models.open_file(path, trust, imports)


def import_object(name: str) -> Any:
    """The object that `module:function` names; modules of the working directory come first."""
    module, _, attribute = name.partition(":")
    found: Any = import_module(module)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ModelUnusable(f"{module} has no {part!r}: {name} must name a function in it.")
        found = getattr(found, part)
    return found


def import_module(module: str) -> Any:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    if module.endswith(".py"):
        path = Path(module).resolve()
        sys.path.insert(0, str(path.parent))
        module = path.stem
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ModelUnusable(
            f"{module} cannot be imported: {error}. The working directory and the packages of this Python were "
            "searched."
        ) from None
