"""The loader of plugins: what it finds, what it refuses, and the order it computes."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from flatout import plugins
from flatout.model.errors import PluginInvalid, UnknownCause
from flatout.plugins import Catalogue, in_order


@dataclass(frozen=True)
class Fruit:
    colour: str


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty room `orchard`, importable."""
    folder = tmp_path / "orchard"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "fruit_spec", sys.modules[__name__])
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "orchard"]:
        del sys.modules[name]


def plant(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    importlib.invalidate_caches()


GREEN = '"""A green one.\n\nIts page.\n"""\nfrom fruit_spec import Fruit\nFRUIT = Fruit("green")\n'


def catalogue() -> Catalogue[Fruit]:
    return Catalogue("orchard", declares="FRUIT", kind=Fruit)


def test_a_file_of_the_room_is_a_plugin_with_its_page(room: Path) -> None:
    plant(room, "lime_tree.py", GREEN)
    plant(room, "_shared.py", "")
    (found,) = catalogue().all().values()
    assert (found.name, found.title, found.page, found.spec) == (
        "lime-tree",
        "A green one",
        "Its page.",
        Fruit("green"),
    )


def test_a_folder_of_the_room_is_a_plugin(room: Path) -> None:
    (room / "pear").mkdir()
    plant(room, "pear/__init__.py", GREEN)
    assert list(catalogue().all()) == ["pear"]


def test_directories_of_the_variable_add_plugins(room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(room, "lime.py", GREEN)
    outside = tmp_path / "outside" / "orchard"
    outside.mkdir(parents=True)
    plant(outside, "fig.py", GREEN)
    monkeypatch.setenv(plugins.VARIABLE, str(tmp_path / "outside"))
    assert list(catalogue().all()) == ["fig", "lime"]
    assert Fruit("green") == importlib.import_module("orchard.fig").FRUIT


@pytest.mark.parametrize("text", ["", "FRUIT = 'green'\n"], ids=["nothing", "another-type"])
def test_a_file_without_its_declaration_is_named(room: Path, text: str) -> None:
    plant(room, "lime.py", text)
    with pytest.raises(PluginInvalid, match=r"lime\.py declares no plugin: `FRUIT = Fruit"):
        catalogue().all()


def test_a_file_that_cannot_be_imported_is_named_with_its_error(room: Path) -> None:
    plant(room, "lime.py", "1 / 0\n")
    with pytest.raises(PluginInvalid, match=r"orchard\.lime cannot be imported: ZeroDivisionError"):
        catalogue().all()


def test_a_plugin_from_outside_cannot_take_the_name_of_another(
    room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(room, "lime.py", GREEN)
    outside = tmp_path / "outside" / "orchard"
    outside.mkdir(parents=True)
    plant(outside, "lime.py", GREEN)
    monkeypatch.setenv(plugins.VARIABLE, str(tmp_path / "outside"))
    with pytest.raises(PluginInvalid, match="'lime' of FLATOUT_PLUGINS has the name of another plugin"):
        catalogue().all()


def test_an_unknown_name_gets_the_nearest_names(room: Path) -> None:
    plant(room, "lime.py", GREEN)
    assert catalogue().find("lime", UnknownCause).spec == Fruit("green")
    with pytest.raises(UnknownCause, match=r"'limes' is not known\. Did you mean lime"):
        catalogue().find("limes", UnknownCause)


def test_order_follows_after_and_else_the_alphabet() -> None:
    assert in_order({"c": (), "a": ("b",), "b": (), "d": ("a", "not-installed")}) == ("b", "a", "c", "d")


def test_a_circle_is_refused() -> None:
    with pytest.raises(PluginInvalid, match="circle among a, b"):
        in_order({"a": ("b",), "b": ("a",), "c": ()})
