"""`flatout compare` as a user calls it: sides, exit codes, JSON, Markdown, hostile text."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import runs
from typer.testing import CliRunner

from flatout import store
from flatout.cli import make_app
from flatout.compare.comparison import compare
from flatout.model.errors import FlatoutError
from flatout.report.markdown import render as as_markdown
from flatout.report.terminal.comparison import render as as_text

runner = CliRunner()
HOSTILE = "<script>alert(1)</script>|`x`\n# @ada \x1b[31m[link](http://evil.example) https://evil.example"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / store.HOME


def names(home: Path, medians: list[float], seed: int = 0) -> list[str]:
    return [runs.keep(home, runs.case(median, seed + i)).parent.name for i, median in enumerate(medians)]


def test_exit_codes(home: Path) -> None:
    same, again, slow = names(home, [20.0, 20.0, 26.0])
    assert runner.invoke(make_app(), ["compare", same, again, "--max-regression", "5%"]).exit_code == 0
    assert runner.invoke(make_app(), ["compare", same, slow]).exit_code == 0, "without a threshold nothing is a failure"
    failed = runner.invoke(make_app(), ["compare", same, slow, "--max-regression", "5%"])
    assert failed.exit_code == 1
    assert "above the threshold of 5 %" in failed.output
    assert runner.invoke(make_app(), ["compare", slow, same, "--max-regression", "0.05"]).exit_code == 0


def test_several_runs_on_a_side(home: Path) -> None:
    old, new = names(home, [20.0] * 3), names(home, [24.0] * 3, 10)
    found = runner.invoke(
        make_app(), ["compare", ",".join(old), ",".join(new), "--max-regression", "5%", "--json", "-"]
    )
    assert found.exit_code == 1
    told = json.loads(found.output)
    assert len(told["before"]) == len(told["after"]) == 3
    assert told["outcome"] == "slower"
    assert told["regressed"] is True
    share = told["step"]["share"]
    assert share["low"] < share["ratio"] < share["high"]
    assert told["spread"]["repeats"] >= 4


def test_patterns(home: Path, tmp_path: Path) -> None:
    names(home, [20.0, 20.0, 20.0])
    found = runner.invoke(make_app(), ["compare", "train-*", "latest", "-q"])
    assert found.exit_code == 0, found.output
    by_path = runner.invoke(make_app(), ["compare", f"{tmp_path}/.flatout/cases/train-*", "latest", "--json", "-"])
    assert len(json.loads(by_path.output)["before"]) == 3
    with pytest.raises(FlatoutError, match="No case matches"):
        runner.invoke(make_app(), ["compare", "nothing-*", "latest"], catch_exceptions=False)


@pytest.mark.parametrize("wrong", ["5", "-1%", "much", "2000%", ""])
def test_a_threshold_that_is_none(home: Path, wrong: str) -> None:
    names(home, [20.0])
    with pytest.raises(FlatoutError, match="--max-regression takes a share"):
        runner.invoke(make_app(), ["compare", "latest", "latest", "--max-regression", wrong], catch_exceptions=False)


def test_markdown_goes_to_a_file(home: Path, tmp_path: Path) -> None:
    names(home, [20.0])
    assert runner.invoke(make_app(), ["compare", "latest", "latest", "--markdown", "out.md"]).exit_code == 0
    assert "| **step** | 19.8 ms | 19.8 ms |" in (tmp_path / "out.md").read_text()
    with pytest.raises(FlatoutError, match="Could not write"):
        runner.invoke(make_app(), ["compare", "latest", "latest", "--markdown", "no/out.md"], catch_exceptions=False)


def test_hostile_text_is_text() -> None:
    hostile = replace(runs.run(20.0, 1), program=HOSTILE, facts={"processor": HOSTILE}, name=HOSTILE, failed=HOSTILE)
    found = compare([hostile], [runs.run(20.0, 2, facts={"processor": "B"})])
    markdown = as_markdown(found, HOSTILE)
    for live in ("<script", "[link](", "\n# @", "@ada", "https://evil", "\x1b"):
        assert live not in markdown
    rows = [line for line in markdown.splitlines() if line.startswith("| processor")]
    assert len(rows) == 1
    assert rows[0].replace("\\|", "").count("|") == 4
    assert "\x1b" not in as_text(found, 100, False)


def test_it_is_readable_at_any_width() -> None:
    found = compare([runs.run(20.0, 1)], [runs.run(26.0, 2, arguments=("--epochs", "4"), others=0.3)], 0.05)
    for width in (40, 80, 160):
        text = as_text(found, width, False)
        assert max(map(len, text.splitlines())) <= width
    assert "different programs or have different arguments" in " ".join(as_text(found, 160, False).split())
    assert as_text(found, 80, False, unicode=False).isascii()


def test_less_time_has_its_sign_where_unicode_is_not_to_be_had() -> None:
    text = as_text(compare([runs.run(20.0, 1)], [runs.run(10.0, 2)]), 80, False, unicode=False)
    assert "-49.7 % [-54.3 %, -44.6 %]" in text
    assert "?" not in text


def test_an_old_case_can_still_be_compared(home: Path) -> None:
    """A case as the first version wrote it: no origin, no window, fewer facts."""
    names(home, [20.0])
    old = Path(__file__).parent.parent / "fixtures" / "cases" / "schema-1-first.json"
    found = runner.invoke(make_app(), ["compare", str(old), "latest", "--json", "-"])
    assert found.exit_code == 0, found.output
    assert json.loads(found.output)["same_program"] is False
