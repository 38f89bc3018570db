"""Cases that were saved before the rebuild load, are written as they were, and render as they did."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from flatout.model.case import Case

DIRECTORY = Path(__file__).resolve().parents[1] / "fixtures" / "cases" / "before-rebuild"


def _render() -> ModuleType:
    specification = importlib.util.spec_from_file_location("before_rebuild", DIRECTORY / "render.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


render = _render()
NAMES = render.names()


def test_there_is_a_case_of_every_kind() -> None:
    kinds = {render.load(name).kind for name in NAMES}
    assert kinds == {"run", "trace", "env", "tune", "check", "data", "optimize"}


def _without_nulls(value: Any, within: str = "") -> Any:
    """Details, data and fields of serving that are null are the same as those that are left out."""
    if isinstance(value, dict):
        pairs = {key: _without_nulls(item, key) for key, item in value.items()}
        optional = within in ("detail", "data", "serving")
        return {key: item for key, item in pairs.items() if item is not None or not optional}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", NAMES)
def test_it_is_written_as_it_was_saved(name: str) -> None:
    saved: dict[str, Any] = json.loads((DIRECTORY / name / "case.json").read_text(encoding="utf-8"))
    written = Case.from_json(saved).to_json()
    added = {name for name, value in written.items() if name not in saved and value is None}
    assert _without_nulls({key: value for key, value in written.items() if key not in added}) == _without_nulls(saved)


@pytest.mark.parametrize("name", NAMES)
def test_it_renders_as_it_did(name: str) -> None:
    rendered = render.rendered(name)
    assert rendered
    for file, text in rendered.items():
        before = (DIRECTORY / name / file).read_text(encoding="utf-8")
        assert render.numbers(text) == render.numbers(before), f"{name}/{file}: a number or a location has changed"
        assert text == before, f"{name}/{file}: if the words were changed on purpose, run {DIRECTORY}/render.py --write"
