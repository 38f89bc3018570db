"""The program that the child runs for a function: `python target_main.py module:function` captures its datasets."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from types import ModuleType
from typing import Any


def load(name: str) -> ModuleType:
    """`package.module`, or the path of a file."""
    if not name.endswith(".py"):
        return importlib.import_module(name)
    sys.path.insert(0, os.path.dirname(os.path.abspath(name)))
    stem = os.path.splitext(os.path.basename(name))[0]
    spec = importlib.util.spec_from_file_location(stem, name)
    if spec is None or spec.loader is None or not os.path.isfile(name):
        raise SystemExit(f"There is no Python file at {name!r}.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module
    spec.loader.exec_module(module)
    return module


def datasets_in(value: Any) -> list[Any]:
    """The datasets in a function's result: one, or several in a tuple, list or dictionary."""
    if hasattr(value, "_variant_tensor"):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [dataset for part in parts for dataset in datasets_in(part)]


def main(target: str) -> None:
    name, _, function = target.rpartition(":")
    sys.path.insert(0, os.getcwd())
    value: Any = load(name)
    for part in function.split("."):
        value = getattr(value, part, None)
    if value is None:
        raise SystemExit(f"{name} has no {function}.")
    found = datasets_in(value() if callable(value) and not hasattr(value, "_variant_tensor") else value)
    if not found:
        raise SystemExit(f"{target} returned no tf.data.Dataset.")
    from flatout.data import child

    for dataset in found:
        child.capture(dataset)


if __name__ == "__main__":
    main(sys.argv[1])
