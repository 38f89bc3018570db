"""The tree of exceptions: all that flatout defines are in it and drawn in it, and no error is raised without a kind."""

from __future__ import annotations

import ast
import builtins
import functools
import sys
from pathlib import Path

import pytest

from flatout.cli import main
from flatout.model import errors

SOURCE = Path(__file__).resolve().parents[2] / "src" / "flatout"
FILES = sorted(SOURCE.rglob("*.py"))
DRAWN = {line.split("─ ")[1].split()[0] for line in (errors.__doc__ or "").splitlines() if "─ " in line}
BUILTIN = {name for name, item in vars(builtins).items() if isinstance(item, type) and issubclass(item, BaseException)}
EXIT_CODES = {
    "ProgramNotFound": 127,
    "ToolMissing": 3,
    "ProgramUnusable": 3,
    "CannotFence": 3,
    "EnvironmentNotMade": 3,
    "ProcessFailed": 3,
    "ServiceFailed": 3,
    "InvalidMessage": 3,
    "CompressionFailed": 1,
    "ElementUnreadable": 1,
    "ShardsDiffer": 1,
}
"""All others end with 2."""


@functools.cache
def trees() -> dict[str, ast.Module]:
    return {str(file.relative_to(SOURCE)): ast.parse(file.read_text(encoding="utf-8")) for file in FILES}


@functools.cache
def exceptions() -> tuple[tuple[str, frozenset[str]], ...]:
    """Every exception class of the source with the names of its bases."""
    classes = [
        (node.name, frozenset(ast.unparse(base).rpartition(".")[2] for base in node.bases))
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    known = set(BUILTIN)
    while more := {name for name, bases in classes if known & bases} - known:
        known |= more
    return tuple((name, bases) for name, bases in classes if known & bases)


def test_every_exception_is_in_the_tree() -> None:
    assert len(exceptions()) >= 30
    in_tree = {"Raised"}
    while more := {name for name, bases in exceptions() if in_tree & bases} - in_tree:
        in_tree |= more
    outside = [name for name, bases in exceptions() if name != "Raised" and not in_tree & bases]
    assert outside == [], "derive from a kind of FlatoutError (shown to the user) or from Internal (caught inside)"


def test_the_tree_is_drawn_whole() -> None:
    assert {name for name, _ in exceptions()} - {"Raised"} == DRAWN


def test_what_a_user_sees_is_defined_in_one_file() -> None:
    here = {name for name, item in vars(errors).items() if isinstance(item, type) and issubclass(item, errors.Raised)}
    elsewhere = {base for name, bases in exceptions() if name not in here for base in bases}
    assert "Internal" in elsewhere
    assert not {name for name in elsewhere & here if issubclass(vars(errors)[name], errors.FlatoutError)}


def test_no_error_is_raised_without_a_kind() -> None:
    made = [
        f"{file}:{node.lineno}"
        for file, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("FlatoutError", "errors.FlatoutError", "Internal")
    ]
    assert made == [], "choose a class of model/errors.py that says what went wrong"


def test_exit_codes() -> None:
    found = {
        name: item.exit_code
        for name, item in vars(errors).items()
        if isinstance(item, type) and issubclass(item, errors.FlatoutError)
    }
    assert found == {name: EXIT_CODES.get(name, 2) for name in found}
    assert set(EXIT_CODES) <= set(found)


def test_an_error_is_printed_without_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["flatout", "explain", "no-such-cause"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    printed = capsys.readouterr()
    assert "There is no cause, lever, check or route named 'no-such-cause'" in printed.err
    assert "Traceback" not in printed.err
