"""`--resume` goes on with a tune of the same program only: same files, by content, and same versions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flatout import store
from flatout.model.case import Case, Trial
from flatout.tune import identity, session
from flatout.tune.journal import Journal, changes_since

COMMAND = ["python", "train.py", "--epochs", "3"]


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a tune that was killed, of a program that has imported a module of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import helper\n")
    (tmp_path / "helper.py").write_text("LAYERS = 3\n")
    directory = tmp_path / ".flatout" / "cases" / "tune-train-1"
    (directory / "scout-1").mkdir(parents=True)
    fact = {"kind": "source-files", "files": [str(tmp_path / "helper.py")]}
    (directory / "scout-1" / "facts.jsonl").write_text(json.dumps(fact) + "\n")
    journal = Journal(directory)
    journal.begin(COMMAND, str(tmp_path))
    journal._write({"scouted": True, "identity": identity.identity_of(COMMAND, directory / "scout-1")})
    return directory


def test_an_unchanged_program_goes_on(begun: Path) -> None:
    assert changes_since(begun) == []
    assert session._unfinished(COMMAND) == begun


@pytest.mark.parametrize("file", ["train.py", "helper.py"])
def test_an_edited_file_is_named_and_nothing_is_reused(file: str, begun: Path, capsys: pytest.CaptureFixture) -> None:
    Path(file).write_text("LAYERS = 4\n")
    assert session._unfinished(COMMAND) is None
    assert f"{file} was changed" in capsys.readouterr().err


def test_a_touched_file_with_the_same_content_is_the_same(begun: Path) -> None:
    Path("helper.py").write_text(Path("helper.py").read_text())
    assert session._unfinished(COMMAND) == begun


def test_a_file_that_is_gone_and_other_versions_are_named(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("helper.py").unlink()
    monkeypatch.setattr(identity, "versions", lambda: {"flatout": "9.9", "tensorflow": "9.0"})
    told = "; ".join(changes_since(begun))
    assert "helper.py is gone" in told
    assert "is now 9.9" in told
    assert "tensorflow" in told


def test_a_line_that_was_cut_off_takes_no_later_one_along(tmp_path: Path) -> None:
    """The coordinator was killed while it wrote; what is finished after `--resume` is on a line of its own."""
    (tmp_path / "journal.jsonl").write_text('{"begin": {"command": ["train.py"]}}\n{"trial": {"stage": "sin')
    trial = Trial(("cache",), "won", stage="single")
    Journal(tmp_path).keep(trial)
    assert Journal(tmp_path).known("single", ("cache",)) == trial


def test_a_tune_that_still_runs_is_not_gone_on_with(begun: Path, capsys: pytest.CaptureFixture) -> None:
    """Two at work in one directory would write to the same trials."""
    store.write_atomically(begun / "scouted.json", json.dumps(Case("tune").to_json()))
    running = Journal(begun)
    running.hold()
    assert session._unfinished(COMMAND) is None
    assert "or it still runs" in capsys.readouterr().err
    running.let_go()
    assert session._unfinished(COMMAND) == begun


def test_other_arguments_are_another_tune(begun: Path) -> None:
    assert session._unfinished([*COMMAND, "--deep"]) is None


def test_a_tune_of_an_older_version_is_not_reused(begun: Path) -> None:
    lines = [json.loads(line) for line in (begun / "journal.jsonl").read_text().splitlines()]
    (begun / "journal.jsonl").write_text("".join(json.dumps({**row, "identity": None}) + "\n" for row in lines))
    assert "another version" in changes_since(begun)[0]


def test_where_the_run_was_killed_the_files_beside_the_program_count(begun: Path) -> None:
    (begun / "scout-1" / "facts.jsonl").unlink()
    assert len(identity.identity_of(COMMAND, begun / "scout-1")["files"]) == 2
