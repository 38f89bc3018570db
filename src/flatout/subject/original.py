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

from flatout.model.errors import ModelUnusable


@dataclass(frozen=True)
class DeclaredInput:
    """An input as the model declares it."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    any_rank: bool = False
    """The model does not say how many dimensions it has: the data or --shape decides."""


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
