from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flatout.cli import make_app
from flatout.model.case import Case
from flatout.model.errors import TraceNotFound, UnknownView

FIXTURE = Path(__file__).parent.parent / "fixtures" / "traces" / "keras-starved.xplane.pb.gz"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_it_prints_the_verdict_and_keeps_the_case(tmp_path: Path) -> None:
    result = CliRunner().invoke(make_app(), ["trace", str(FIXTURE)])
    assert result.exit_code == 0, result.output
    assert "Host-bound" in result.stdout
    assert (tmp_path / ".flatout" / "latest" / "case.json").exists()


def test_quiet_without_saving(tmp_path: Path) -> None:
    result = CliRunner().invoke(make_app(), ["trace", str(FIXTURE), "--quiet", "--no-save"])
    assert result.stdout.count("\n") == 1
    assert result.stderr == ""
    assert not (tmp_path / ".flatout").exists()


def test_the_verdict_alone_has_nothing_that_a_terminal_obeys(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("trace", verdict="Host \x1b[31mred\x1b[0m\u202e is slow.")
    monkeypatch.setattr("flatout.trace.analyse", lambda *_, **__: case)
    result = CliRunner().invoke(make_app(), ["trace", "logs", "--quiet", "--no-save"], color=True)
    assert result.stdout == "Host red is slow.\n"


def test_json_alone_on_standard_output() -> None:
    result = CliRunner().invoke(make_app(), ["trace", str(FIXTURE), "--json", "-", "--no-save"])
    assert json.loads(result.stdout)["kind"] == "trace"


def test_a_timeline_is_written(tmp_path: Path) -> None:
    CliRunner().invoke(make_app(), ["trace", str(FIXTURE), "--perfetto", "t.json", "--no-save"])
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]


def test_a_missing_file_is_our_error() -> None:
    result = CliRunner().invoke(make_app(), ["trace", "nothing.xplane.pb"])
    assert isinstance(result.exception, TraceNotFound)


def test_a_view_that_does_not_exist_is_refused_before_a_case_is_kept(tmp_path: Path) -> None:
    with pytest.raises(UnknownView, match="no view named 'nope'"):
        CliRunner().invoke(make_app(), ["trace", str(FIXTURE), "--view", "nope"], catch_exceptions=False)
    assert not list(tmp_path.iterdir())
