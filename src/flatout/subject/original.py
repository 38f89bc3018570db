"""The user's model as a function of tensors, wherever it comes from."""

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
class Declared:
    """An input as the model declares it."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]


@dataclass
class Original:
    kind: Literal["keras", "tf_keras", "saved_model"]
    call: Callable[[Sequence[Any]], Sequence[Any]]
    """Inputs in their order to outputs in their order, for inference."""
    inputs: tuple[Declared, ...] | None
    """None where the model has never been called and says nothing of its inputs: the data decides."""
    output_names: Callable[[int], Sequence[str]]
    variables: Sequence[Any]
    owner: Any
    """Keeps tables and other resources alive."""
    reopen: dict[str, Any] = field(default_factory=dict)
    """How a runner gets the Keras object itself; empty where it cannot."""
    unrolled: Callable[[], AbstractContextManager[bool]] = lambda: contextlib.nullcontext(False)
    """Within it, recurrent layers are traced unrolled; False where there are none."""


def open_original(
    model: str, *, trust: bool = False, imports: Sequence[str] = (), signature: str | None = None
) -> Original:
    """Open whatever the user named: a Keras file, an H5 file, a SavedModel's directory or `module:function`."""
    from flatout.subject import keras_models, saved_models

    path = Path(model)
    if not path.exists():
        if ":" in model and os.sep not in model:
            return keras_models.of_object(named(model)(), {"how": "factory", "name": model, "where": os.getcwd()})
        raise ModelRefused(
            f"There is no model at {model}. Give a .keras or .h5 file, the directory of a SavedModel, or "
            "`module:function` for a function that builds it."
        )
    for name in imports:
        imported(name)
    if path.is_dir():
        if (path / "saved_model.pb").exists():
            return saved_models.open_directory(path, signature, trust)
        raise ModelRefused(f"{path} is a directory without saved_model.pb in it: no SavedModel.")
    if path.suffix in (".tflite", ".onnx"):
        raise ModelRefused(
            f"{path} is already converted: nothing faster can be made from it. Give the model it was made from, and "
            f"this one to compare with: flatout optimize MODEL --compare {path}"
        )
    return keras_models.open_file(path, trust, imports)


def named(name: str) -> Any:
    """The object behind `module:function`; modules of the working directory come first."""
    module, _, attribute = name.partition(":")
    found: Any = imported(module)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ModelUnusable(f"{module} has no {part!r}: {name} was expected to name a function in it.")
        found = getattr(found, part)
    return found


def imported(module: str) -> Any:
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
            f"{module} cannot be imported: {error}. Modules are looked for in the working directory and in this Python."
        ) from None
