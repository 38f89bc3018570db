"""A toy cause, check, route and cure from outside of the package are found by every command that shows such things.

The toys are `tests/fixtures/plugins/`, named in FLATOUT_PLUGINS: one file or folder each, and nothing else mentions
them. `tests/integration/test_toys_for_real.py` has the commands that start TensorFlow.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = ROOT / "tests" / "fixtures" / "plugins"


def flatout(*words: str, cwd: Path, plugins: Path | str = PLUGINS, code: int = 0) -> str:
    return python("-m", "flatout", *words, cwd=cwd, plugins=plugins, code=code)


def python(*words: str, cwd: Path, plugins: Path | str = PLUGINS, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env={**os.environ, "FLATOUT_PLUGINS": str(plugins), "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("toy-cause", "does nothing for a while"),
        ("toy-check", "Only grey machines are slow"),
        ("toy-cure", "the answer is computed once and kept"),
        ("toy-route", "the baseline under another name"),
    ],
)
def test_explain_shows_the_page(name: str, words: str, tmp_path: Path) -> None:
    shown = flatout("explain", name, "--width", "200", cwd=tmp_path)
    assert shown.startswith(name)
    assert words in shown


def test_explain_lists_the_cause(tmp_path: Path) -> None:
    assert "toy-cause" in flatout("explain", cwd=tmp_path)


def test_check_finds_the_pattern(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import tensorflow as tf\n\nwait_for_nothing()\n")
    found = json.loads(flatout("check", "program.py", "--format", "json", cwd=tmp_path, code=1))
    assert [item["evidence"][0]["value"] for item in found["findings"]] == ["toy-cause/call"]


def test_a_pattern_is_looked_for_although_the_cache_does_not_know_it(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import tensorflow as tf\n\nwait_for_nothing()\n")
    flatout("check", "program.py", cwd=tmp_path, plugins="")
    assert "toy-cause" in flatout("check", "program.py", cwd=tmp_path, code=1)


def test_env_shows_the_check(tmp_path: Path) -> None:
    case = json.loads(flatout("env", "--quick", "--json", "-", cwd=tmp_path))
    (item,) = [item for item in case["evidence"] if item["source"] == "toy-check"]
    assert item["value"] == "grey"


def test_optimize_knows_the_route(tmp_path: Path) -> None:
    (tmp_path / "model.keras").write_text("")
    shown = flatout("optimize", "model.keras", "--route", "toy-rout", cwd=tmp_path, code=2)
    assert "Did you mean toy-route" in shown


def test_tune_plans_the_cure(tmp_path: Path) -> None:
    script = (
        "from flatout.causes import diagnose; from flatout.model.case import Case; from flatout.tune import plan;"
        "print(*plan.make(diagnose(Case('run'))).levers)"
    )
    assert "toy-cure" in python("-c", script, cwd=tmp_path).split()


def test_docs_have_the_pages(tmp_path: Path) -> None:
    python(str(ROOT / "scripts" / "generate_docs.py"), "--to", str(tmp_path), cwd=tmp_path)
    for folder, name in (
        ("causes", "toy-cause"), ("levers", "toy-cure"), ("checks", "toy-check"), ("routes", "toy-route")
    ):  # fmt: skip
        assert (tmp_path / folder / f"{name}.md").read_text().startswith(f"# {name}\n")
        assert f"({name}.md)" in (tmp_path / folder / "index.md").read_text()


def test_without_the_variable_there_are_no_toys(tmp_path: Path) -> None:
    assert "There is no" in flatout("explain", "toy-cause", cwd=tmp_path, plugins="", code=2)


@pytest.mark.parametrize("words", [("explain",), ("run", "program.py")], ids=["explain", "run"])
def test_a_broken_plugin_is_named_before_anything_runs(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "causes").mkdir()
    (tmp_path / "causes" / "broken.py").write_text('"""A cause."""\nraise RuntimeError("no luck")\n')
    (tmp_path / "program.py").write_text("print('the program runs')\n")
    shown = flatout(*words, cwd=tmp_path, plugins=tmp_path, code=2)
    assert "the program runs" not in shown
    assert "flatout.causes.broken cannot be imported: RuntimeError: no luck" in shown
    assert "Traceback" not in shown
