"""`flatout show` and `flatout explain`, as a user calls them."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from sample_case import sample_case
from typer.main import get_command

from flatout import store
from flatout.causes import catalogue
from flatout.cli import make_app
from flatout.model.case import Case
from flatout.model.errors import CaseNotFound, CaseUnreadable, FlatoutError, UnknownCause, UnknownView
from flatout.report.json import write
from flatout.store import saving

runner = CliRunner()


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return saving.save(sample_case(), store.new_directory("train.py"))


@cache
def command() -> click.Command:
    """Made once: that takes longer than most of what it does."""
    return get_command(make_app())


def run(*arguments: str) -> str:
    result = runner.invoke(command(), list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_show_shows_the_latest(kept: Path) -> None:
    text = run("show", "--width", "100")
    assert "input-bound" in text
    assert kept.parent.name in text or "latest" in text


def test_show_takes_a_case_and_a_view(kept: Path) -> None:
    assert "Operations" in run("show", str(kept), "--view", "ops")
    assert "Memory" in run("show", kept.parent.name, "--view", "memory", "--width", "80")


def test_the_patch_is_that_of_the_newest_tune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run after the tune does not hide it, and an older tune's is not given where the newest has none."""
    monkeypatch.chdir(tmp_path)
    patch = "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-a\n+b\n"
    seen = dataclasses.replace(sample_case(), patch="")
    tuned = dataclasses.replace(seen, kind="tune", patch=patch)

    def keep(case: Case, age: int) -> None:
        path = saving.save(case, store.new_directory(case.kind))
        os.utime(path, (age, age))

    keep(tuned, 1)
    keep(seen, 2)
    assert run("show", "--view", "patch").rstrip("\n") == patch.rstrip("\n")
    keep(dataclasses.replace(tuned, patch=""), 3)
    keep(seen, 4)
    assert "No patch is in this case" in run("show", "--view", "patch")


def test_show_writes_json(kept: Path, tmp_path: Path) -> None:
    assert Case.from_json(json.loads(run("show", "--json", "-"))) == sample_case()
    assert "input-bound" in run("show", "--json", "out.json")
    assert Case.from_json(json.loads((tmp_path / "out.json").read_text())) == sample_case()


def test_show_says_what_is_wrong(kept: Path) -> None:
    with pytest.raises(UnknownView, match="The views are"):
        run("show", "--view", "flames")
    with pytest.raises(CaseNotFound):
        run("show", "nothing")
    with pytest.raises(FlatoutError, match="Could not write JSON"):
        run("show", "--json", "missing/directory/out.json")
    with pytest.raises(FlatoutError, match="Is a directory"):
        run("show", "--json", ".")


def test_a_case_with_wrong_values_is_called_damaged(kept: Path) -> None:
    data = json.loads(kept.read_text())
    data["steps"]["count"] = "\x1b[31mmany"
    kept.write_text(json.dumps(data))
    with pytest.raises(CaseUnreadable, match=r"damaged: steps\.count"):
        run("show")


def test_json_has_no_numbers_that_json_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    write(Case(kind="env", environment={"x": float("nan"), "y": [float("inf"), 1.5]}), "-")
    assert json.loads(capsys.readouterr().out)["environment"] == {"x": None, "y": [None, 1.5]}


def test_explain_lists_all_by_group() -> None:
    text = run("explain")
    for name in ("input", "graph", "numerics", "hardware", "api", *catalogue()):
        assert name in text


@pytest.mark.parametrize("name", sorted(catalogue()))
@pytest.mark.parametrize("width", [60, 80, 120])
def test_explain_shows_each_page_within_its_width(name: str, width: int) -> None:
    text = run("explain", name, "--width", str(width))
    assert "What it is" in text
    assert "levers  " in text
    assert "```" not in text
    assert max(map(len, text.splitlines())) <= width


def test_explain_as_json() -> None:
    assert json.loads(run("explain", "float64", "--json", "-"))["group"] == "numerics"
    assert len(json.loads(run("explain", "--json", "-"))) == len(catalogue())


def test_explain_of_an_unknown_cause() -> None:
    with pytest.raises(UnknownCause, match="Did you mean"):
        run("explain", "float-64")


def test_neither_loads_what_it_does_not_need(kept: Path) -> None:
    """`show` starts in a fraction of a second, because it loads neither TensorFlow nor numpy."""
    program = (
        "import sys; sys.argv[1:] = ['show']\n"
        "from flatout.cli import make_app\n"
        "make_app()(standalone_mode=False)\n"
        "print([name for name in ('tensorflow', 'numpy', 'keras', 'libcst', 'rich.markdown', 'pygments')"
        " if name in sys.modules], file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stderr.splitlines()[-1] == "[]"


def test_a_terminal_without_unicode_gets_ascii(kept: Path) -> None:
    command = [sys.executable, "-m", "flatout", "show"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    result = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert result.stdout.isascii()
    assert b"input-bound" in result.stdout
