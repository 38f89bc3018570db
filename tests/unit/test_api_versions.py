"""The table of public names by version: it holds together, and fits the rules and the TensorFlow that is installed."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from flatout.causes import gone_api
from flatout.source import api_versions

SCRIPT = Path(__file__).parents[2] / "scripts" / "generate_api_table.py"


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_api_table", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["generate_api_table"] = made
    spec.loader.exec_module(made)
    return made


def _tensorflow() -> str:
    """The version, under whichever name it was installed."""
    for name in ("tensorflow", "tensorflow-cpu"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(name)
    pytest.skip("TensorFlow is not installed")


@pytest.mark.parametrize(
    ("name", "first", "gone"),
    [
        ("keras.mixed_precision.experimental.set_policy", (2, 0), (2, 9)),
        ("tensorflow.train.experimental.enable_mixed_precision_graph_rewrite", (2, 0), (2, 6)),
        ("keras.utils.multi_gpu_model", (2, 0), (2, 4)),
        ("tensorflow.data.AUTOTUNE", (2, 4), None),
        ("keras.mixed_precision.set_global_policy", (2, 4), None),
        ("keras.config.set_dtype_policy", (2, 16), None),
    ],
)
def test_names_that_are_known_to_have_come_and_gone(name: str, first: tuple[int, int], gone: object) -> None:
    span = api_versions.table()[name]
    assert (span.first, span.gone) == (first, gone)
    assert span.covers((2, 16)) is (gone is None)


def test_the_table_holds_together() -> None:
    oldest, newest = api_versions.versions()
    assert (oldest, newest) == ((2, 0), (2, 21))
    table = api_versions.table()
    assert len(table) > 2000
    assert list(table) == sorted(table)
    for name, span in table.items():
        assert name.startswith(("tensorflow.", "keras."))
        assert not any(part.startswith("_") for part in name.split("."))
        assert oldest <= span.first <= newest
        assert span.gone is None or span.first < span.gone <= newest
        assert span.first > oldest or span.gone is not None  # what all versions have is left out
    for name in ("tensorflow.function", "tensorflow.data.Dataset", "keras.Model", "keras.layers.Dense"):
        assert name not in table


def test_rules_say_what_the_table_says() -> None:
    known = [name for name in gone_api.NAMES if name in api_versions.table()]
    assert len(known) >= 8
    for name in known:
        assert api_versions.table()[name].gone == gone_api.NAMES[name][0], name


def test_it_fits_the_tensorflow_that_is_installed() -> None:
    script = _script()
    _, newest = api_versions.versions()
    installed = _tensorflow().split(".")[:2]
    keras = importlib.metadata.version("keras")
    if tuple(map(int, installed)) != newest or keras != script.KERAS_OF[newest]:
        pytest.skip("another TensorFlow or Keras than the newest of the table")
    names: set[str] = set()
    for package in ("tensorflow", "keras"):
        spec = importlib.util.find_spec(package)  # not imported: that takes seconds
        assert spec is not None
        assert spec.origin is not None
        top = Path(spec.origin).parent
        for file in (*top.glob("_api/v2/v2.py"), *top.rglob("__init__.py")):
            module = script._module_of(file.relative_to(top.parent).as_posix())
            if module is not None and not (package == "tensorflow" and module.startswith("keras")):
                names |= {f"{module}.{name}" for name in script.listed(file.read_text(encoding="utf-8"))}
    assert len(names) > 4000
    wrong = {name for name, span in api_versions.table().items() if (span.gone is None) != (name in names)}
    assert not wrong
