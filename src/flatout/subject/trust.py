"""Refuses model files that would run code when they are opened, unless the user trusts the file.

A `.keras` file is a description of layers: a Lambda contains Python bytecode, and any other class is imported from the
module that the file names. H5 files have the same description in an attribute. A SavedModel is a graph, which can read
and write files when it is called. The checks here only read the description; nothing is imported or run.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from flatout.model import json_text
from flatout.model.errors import ModelRefused

LARGEST_CONFIG = 64 << 20
KERAS_PARTS = frozenset(
    [
        "activations",
        "applications",
        "constraints",
        "dtype_policies",
        "engine",
        "initializers",
        "layers",
        "legacy_tf_layers",
        "losses",
        "metrics",
        "mixed_precision",
        "models",
        "ops",
        "optimizers",
        "quantizers",
        "random",
        "regularizers",
        "trainers",
    ]
)
"""Parts of Keras with classes that a model is made of. `keras.utils` has functions that download and unpack."""


def keras_archive(path: Path) -> tuple[dict[str, Any], str]:
    """The description inside a `.keras` file, and the Keras version that wrote it."""
    try:
        with zipfile.ZipFile(path) as archive:
            config = _member(archive, "config.json")
            version = str(_member(archive, "metadata.json").get("keras_version", ""))
    except (zipfile.BadZipFile, OSError, KeyError, ValueError, EOFError, NotImplementedError, RuntimeError) as error:
        raise ModelRefused(
            f"{path} cannot be read as a .keras file: {error}. Save the model again with `model.save('name.keras')`."
        ) from None
    return config, version


def _member(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    if archive.getinfo(name).file_size > LARGEST_CONFIG:
        raise ValueError(f"its {name} is larger than any description of a model")
    data = json_text.parse(archive.read(name))
    if not isinstance(data, dict):
        raise ValueError(f"its {name} does not describe a model")
    return data


def h5_config(path: Path) -> tuple[dict[str, Any], str]:
    import h5py

    try:
        with h5py.File(path, "r") as file:
            config, version = file.attrs.get("model_config"), file.attrs.get("keras_version", "")
        text = config.decode() if isinstance(config, bytes) else config
        version = version.decode() if isinstance(version, bytes) else str(version)
        if text is None:
            raise ModelRefused(
                f"{path} contains only weights, not a model. Save the whole model, or give a function that builds it "
                "and loads them: `module:function`."
            )
        return dict(json_text.parse(text)), version
    except (OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        raise ModelRefused(f"{path} cannot be read as an HDF5 model: {error}. Save the model again.") from None


def check_layers(config: dict[str, Any], path: Path, trusted: bool, imports: Sequence[str] = ()) -> None:
    """Refuse a description that contains code, or classes that are neither of Keras nor of the imported modules."""
    code = sorted({f"{kind} {name!r}" for kind, name in _code_in(config)})
    if code and not trusted:
        raise ModelRefused(
            f"{path} contains Python code that would run when it is opened: {_some(code)}. Give --trust if you trust "
            "its source; otherwise rebuild the model with layers of Keras."
        )
    foreign = sorted(
        {name for name, module, registered in _foreign_in(config) if not _imported(name, module, registered, imports)}
    )
    if foreign and not trusted:
        named = f" --import {', '.join(imports)} does not bring them." if imports else ""
        raise ModelRefused(
            f"{path} uses classes that are not part of Keras: {_some(foreign)}.{named} Name the module that defines "
            "and registers them with --import MODULE (it is run), or give a function that builds the model: "
            "`module:function`."
        )


def check_graph(unsafe: list[str], path: Path, trusted: bool) -> None:
    if unsafe and not trusted:
        raise ModelRefused(
            f"{path} runs operations that may do more than compute (read or write files, run Python): {_some(unsafe)}. "
            "Give --trust if you trust its source. Operations of a library of your own are allowed where --import "
            "names the module that loads them."
        )


def objects_of(imports: Sequence[str]) -> dict[str, Any]:
    """Classes and functions that the modules named by --import define, by name.

    A file names the module that defined a class when it was saved, which is often another one today.
    """
    found: dict[str, Any] = {}
    for name in imports:
        module = sys.modules.get(Path(name).stem if name.endswith(".py") else name)
        for known, value in vars(module).items() if module is not None else ():
            if callable(value) and getattr(value, "__module__", None) == getattr(module, "__name__", ""):
                found[known] = value
    return found


def _imported(shown: str, module: str, registered: str, imports: Sequence[str]) -> bool:
    """Whether a class is one that a module named by --import defines, or has registered with Keras."""
    if any(module == name or module.startswith(f"{name}.") for name in imports):
        return True
    if shown.rpartition(".")[2] in objects_of(imports):
        return True
    return (
        bool(imports)
        and bool(registered)
        and any(
            getattr(sys.modules.get(keras), "saving", None) is not None
            and sys.modules[keras].saving.get_registered_object(registered) is not None
            for keras in ("keras", "tf_keras")
        )
    )


def _some(names: list[str], limit: int = 5) -> str:
    shown = ", ".join(name[:80] for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def _code_in(node: Any) -> Iterator[tuple[str, str]]:
    for item in _walk(node):
        if item.get("class_name") in ("Lambda", "__lambda__", "TFOpLambda", "SlicingOpLambda"):
            inner = item.get("config")
            # TFOpLambda names an operation of TensorFlow and contains no code.
            if item["class_name"] in ("Lambda", "__lambda__"):
                name = inner.get("name", "") if isinstance(inner, dict) else ""
                yield "Lambda layer" if item["class_name"] == "Lambda" else "lambda", str(name)


def _foreign_in(node: Any) -> Iterator[tuple[str, str, str]]:
    """Classes that are not Keras's own: as they are shown, their module, the name that they are registered by."""
    for item in _walk(node):
        name, module, registered = item.get("class_name"), item.get("module"), item.get("registered_name")
        if not isinstance(name, str):
            continue
        known = registered if isinstance(registered, str) else ""
        if module == "builtins":
            if name not in ("__tuple__", "function", "dict", "list"):
                yield f"builtins.{name}", module, known
        elif isinstance(module, str) and module:
            if not _is_of_keras(module):
                yield f"{module}.{name}", module, known
        elif module is None and ">" in known:
            yield known, "", known


def _is_of_keras(module: str) -> bool:
    package, *parts = module.replace(".src", "").replace(".api", "").replace("._tf_keras.keras", "").split(".")
    return package in ("keras", "tf_keras") and (not parts or parts[0] in KERAS_PARTS)


def _walk(node: Any) -> Iterator[dict[str, Any]]:
    stack = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            yield item
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
