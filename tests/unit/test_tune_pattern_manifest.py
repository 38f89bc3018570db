"""The list of patterns: programs, twins, causes and levers that exist, and no program that is left out."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from flatout.causes import catalogue as causes
from flatout.cures import levers

sys.path.insert(0, str(Path(__file__).parent.parent / "programs"))
from pattern_manifest import HERE, PATTERNS, Pattern


@pytest.mark.parametrize("one", PATTERNS, ids=lambda one: one.name)
def test_what_a_pattern_names_exists(one: Pattern) -> None:
    assert {*one.finding, *one.also} <= set(causes())
    assert {*one.cures, *one.patch} <= set(levers())
    assert bool(one.patch) == bool(one.finding), "where there is something to win, there is a patch"
    for program in filter(None, (one.path, one.expert)):
        assert ast.get_docstring(ast.parse(program.read_text()))


def test_every_program_is_listed() -> None:
    listed = {path for one in PATTERNS for path in (one.path, one.expert)}
    found = {*(HERE / "patterns").glob("*.py"), *(HERE / "patterns" / "expert").glob("*.py")}
    assert found
    assert found <= listed
