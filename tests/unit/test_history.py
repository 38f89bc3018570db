"""The history: what is recorded, how it is grouped, many writers at once, a kill in the middle, other versions."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import runs
from typer.testing import CliRunner

from flatout import store
from flatout.cli import make_app
from flatout.history.series import all_series, repeats_of, series_of
from flatout.history.trend import draw, points, render
from flatout.model.errors import CaseNotFound, CaseUnreadable, FlatoutError
from flatout.store import database, origin, saving
from flatout.store.database import MIGRATIONS, History, open_in

runner = CliRunner()

WRITER = """
import json, sys
from pathlib import Path
from flatout.store.run_summary import run_from
from flatout.store.database import History
one = run_from(json.loads(sys.argv[1]))
for number in range(int(sys.argv[4])):
    with History(Path(sys.argv[2])) as history:
        history.add(one, f"{sys.argv[3]}-{number}", "/nowhere", 1.0 * number)
    print(number, flush=True)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / store.HOME).mkdir()
    return tmp_path / store.HOME


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", WRITER, json.dumps(runs.run().to_json()), str(path), name, str(count)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def keep(home: Path, median: float, seed: int, commit: str = "", changes: str = "") -> Path:
    environment = runs.source(commit, changes=changes) if commit else None
    return runs.keep(home, runs.case(median, seed, environment=environment))


def test_a_saved_case_is_recorded_once(home: Path) -> None:
    path = keep(home, 20.0, 1, "a" * 40)
    saving.save(store.load(path), path.parent)
    with open_in(home) as history:
        (entry,) = history.entries()
    assert entry.run.program == "train.py"
    assert entry.run.arguments == ("--epochs", "3")
    assert entry.run.commit == "a" * 40
    assert entry.run.median_ms == pytest.approx(20, rel=0.05)
    assert Path(entry.directory) == path.parent.resolve()


def test_cases_without_steps_are_not_recorded(home: Path) -> None:
    runs.keep(home, replace(runs.case(), steps=None))
    assert not (home / database.FILE).exists()


@pytest.mark.parametrize("is_open", [False, True], ids=["closed", "with a log"])
def test_a_history_in_a_read_only_directory_is_read(
    home: Path, is_open: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = open_in(home)
    keep(home, 20.0, 1)
    if not is_open:
        with first:
            pass
    before = {path: path.read_bytes() for path in home.glob("history.db*")}
    assert any(path.name.endswith("-wal") for path in before) == is_open
    monkeypatch.setattr(database.os, "access", lambda path, mode: False)
    monkeypatch.setattr(database.sqlite3, "connect", only_elsewhere(home))
    (series,) = all_series(home)
    assert series.count == 1
    assert {path: path.read_bytes() for path in home.glob("history.db*")} == before
    keep(home, 21.0, 2)
    assert "was not added to the history" in capsys.readouterr().err


def only_elsewhere(home: Path) -> object:
    """SQLite as it is in a directory that may not be written."""
    connect = sqlite3.connect

    def refused(path: Path, **options: object) -> object:
        if Path(path).parent == home:
            raise sqlite3.OperationalError("unable to open database file")
        return connect(path, **options)  # type: ignore[call-overload]

    return refused


def test_a_history_that_cannot_be_written_does_not_stop_a_run(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / database.FILE).write_bytes(b"this is no database, and long enough to be looked at" * 40)
    path = keep(home, 20.0, 1)
    assert store.load(path).steps is not None
    assert "was not added to the history" in capsys.readouterr().err
    with pytest.raises(FlatoutError, match="Move it away"):
        open_in(home)


def test_a_history_that_others_hold_is_not_to_be_moved_away(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "WRITE_TIMEOUT", 0.05)
    keep(home, 20.0, 1)
    other = sqlite3.connect(home / database.FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store.write_case(runs.case(20.0, 2), store.new_directory("train", home))
    assert len(all_series(home)) == 1, "what is recorded can be read"
    with open_in(home) as history, pytest.raises(CaseUnreadable, match=r"locked.*not locked by another") as told:
        history.add(runs.run(), "key", "/nowhere", 1.0)
    assert "Move it away" not in str(told.value)
    other.close()
    assert [one.count for one in all_series(home)] == [2]


def test_cases_that_nobody_recorded_are_taken_in(home: Path) -> None:
    keep(home, 20.0, 1, "a" * 40)
    for file in home.glob("history.db*"):
        file.unlink()
    (series,) = all_series(home)
    assert series.count == 1
    (series,) = all_series(home)
    assert series.count == 1, "taken in twice"


def test_runs_are_grouped_by_state(home: Path) -> None:
    for seed, (commit, changes) in enumerate([("a", ""), ("a", ""), ("b", ""), ("b", "dirty"), ("b", "")]):
        keep(home, 20.0, seed, commit * 40, changes)
    (series,) = all_series(home)
    assert [(state.run.commit[:1], state.run.changes, len(state.runs)) for state in series.states] == [
        ("a", "", 2),
        ("b", "", 2),
        ("b", "dirty", 1),
    ]
    groups = repeats_of([series.states[0].runs[0]], home)
    assert [len(group) for group in groups] == [2], "what is left of a group of two is no repeat"


def test_runs_of_unknown_source_are_no_repeats(home: Path) -> None:
    for seed in range(3):
        keep(home, 20.0, seed)
    (series,) = all_series(home)
    assert len(series.states) == 3


def test_what_cannot_be_set_side_by_side_is_kept_apart(home: Path) -> None:
    keep(home, 20.0, 1, "a" * 40)
    runs.keep(
        home, runs.case(20.0, 2, command=("python", "train.py", "--epochs", "9"), environment=runs.source("a" * 40))
    )
    other = runs.source("a" * 40) | {"cpu": {"model": "another"}}
    runs.keep(home, runs.case(20.0, 3, environment=other))
    failed = runs.case(20.0, 4, environment=runs.source("a" * 40))
    runs.keep(home, replace(failed, program=replace(failed.program, error="ValueError: no")))
    assert len(all_series(home)) == 3


def test_the_trend_is_shown_and_told(home: Path) -> None:
    for seed, (commit, median) in enumerate(
        [("a", 20.0), ("a", 20.0), ("b", 20.0), ("b", 20.0), ("c", 30.0), ("c", 30.0)]
    ):
        keep(home, median, seed, commit * 40)
    shown = runner.invoke(make_app(), ["history", "--width", "130"])
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    assert "slower" in next(line for line in lines if "ccccccc" in line)
    assert "slower" not in next(line for line in lines if "bbbbbbb" in line)
    brief = runner.invoke(make_app(), ["history", "-q"]).output
    assert brief.startswith("train.py --epochs 3: ")
    assert "since the state before" in brief
    assert len(brief.splitlines()) == 1
    told = json.loads(runner.invoke(make_app(), ["history", "--json", "-"]).output)
    (series,) = told["series"]
    assert [state["outcome"] for state in series["states"]] == [None, "same", "slower"]
    assert series["states"][2]["change"]["low"] > 0
    for width in (40, 80):
        assert max(map(len, render(all_series(home), 9, width, False).splitlines())) <= width


def test_a_state_that_is_run_again_is_told_and_keeps_its_place(home: Path) -> None:
    for seed, (commit, median) in enumerate([("a", 20.0), ("b", 30.0), ("b", 30.0), ("a", 20.0), ("a", 20.0)]):
        keep(home, median, seed, commit * 40)
    (series,) = all_series(home)
    assert [state.run.commit[:1] for state in series.states] == ["a", "b"]
    brief = runner.invoke(make_app(), ["history", "-q"]).output
    assert "aaaaaaa" in brief
    assert "bbbbbbb" not in brief
    assert "faster since the state before" in brief


def test_one_state_is_no_states(home: Path) -> None:
    keep(home, 20.0, 1, "a" * 40)
    assert "1 run of 1 state\n" in render(all_series(home), 9, 100, False)


def test_the_interval_is_drawn_on_the_common_scale(home: Path) -> None:
    for seed in range(4):
        keep(home, 20.0, seed, "ab"[seed % 2] * 40)
    (series,) = all_series(home)
    one, other = points(series)
    assert one.ms.low < one.ms.ratio < one.ms.high
    low, high = min(one.ms.low, other.ms.low), max(one.ms.high, other.ms.high)
    for point in (one, other):
        drawn = draw(point.ms, low, high, 30)
        assert len(drawn) == 30
        assert drawn.count("█") == 1


def test_an_empty_history_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FlatoutError, match="flatout run"):
        runner.invoke(make_app(), ["history"], catch_exceptions=False)
    (tmp_path / store.HOME).mkdir()
    with pytest.raises(CaseNotFound, match=r"no runs of 'other\.py' yet\. `flatout history` shows"):
        runner.invoke(make_app(), ["history", "other.py"], catch_exceptions=False)


def test_many_writers_at_once_lose_nothing(home: Path) -> None:
    path = home / database.FILE
    writers = [writer(path, f"w{number}", 25) for number in range(4)]
    for one in writers:
        one.communicate(timeout=400)
    assert [one.returncode for one in writers] == [0] * 4
    with History(path) as history:
        assert len(history.entries()) == 100


def test_a_kill_in_the_middle_loses_nothing_that_was_written(home: Path) -> None:
    path = home / database.FILE
    told: dict[str, int] = {}
    for attempt in range(3):
        one = writer(path, f"k{attempt}", 100_000)
        assert one.stdout is not None
        for _ in range(1 + 10 * attempt):
            assert one.stdout.readline()
        one.send_signal(signal.SIGKILL)
        lines = one.stdout.read().split()
        one.wait()
        told[f"k{attempt}"] = int(lines[-1]) if lines else 0
    with History(path) as history:
        keys = history.keys()
        history.add(runs.run(), "after", "/nowhere", 1.0)
    for name, last in told.items():
        assert {f"{name}-{number}" for number in range(last + 1)} <= keys
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_history_of_a_newer_version_is_left_alone(home: Path) -> None:
    with sqlite3.connect(home / database.FILE) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    with pytest.raises(FlatoutError, match="newer flatout"):
        open_in(home)


def test_an_older_schema_is_brought_up_to_date(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(home, 20.0, 1)
    later = (*MIGRATIONS, ("ALTER TABLE runs ADD COLUMN remark TEXT NOT NULL DEFAULT ''",))
    monkeypatch.setattr(database, "MIGRATIONS", later)
    with open_in(home) as history:
        assert len(history.entries()) == 1
        assert history._version() == 2


def test_rows_that_cannot_be_read_are_passed_over(home: Path) -> None:
    keep(home, 20.0, 1)
    with sqlite3.connect(home / database.FILE) as connection:
        connection.execute("INSERT INTO runs SELECT 99, 'x', place, recorded, kind, program, '', '', '[1' FROM runs")
    with open_in(home) as history:
        assert len(history.entries()) == 1


def test_names_that_are_no_text_can_be_recorded(home: Path) -> None:
    runs.keep(home, runs.case(20.0, 1, command=("python", "tr\udcffain.py")))
    (series,) = all_series(home)
    assert "ain.py" in series.program


def git(where: Path, *words: str) -> str:
    settings = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main")
    return subprocess.run(
        ["git", *settings, *words], cwd=where, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_the_commit_is_the_one_that_the_run_began_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "-q")
    program = tmp_path / "train.py"
    program.write_text("print(1)\n")
    os.utime(program, (1, 1))
    git(tmp_path, "add", "train.py")
    git(tmp_path, "commit", "-qm", "first")
    first = git(tmp_path, "rev-parse", "HEAD")
    monkeypatch.chdir(tmp_path)
    home = tmp_path / store.HOME
    directory = store.new_directory("train", home)
    assert origin.alive(origin.read(directory))
    program.write_text("print(2)\n")
    git(tmp_path, "commit", "-qam", "second, while the first still runs")
    case = runs.case()
    path = saving.save(replace(case, program=replace(case.program, directory=str(tmp_path))), directory)
    source = store.load(path).environment["source"]
    assert source["commit"] == first
    assert source["branch"] == "main"
    assert "changes" not in source
    assert "sha256" not in source, "the file is not what was run any more"

    program.write_text("print(3)\n")
    assert origin.read(store.new_directory("train", home))["changes"]


def test_a_process_that_is_gone_is_not_alive() -> None:
    facts = {"pid": os.getpid(), "born": "1"}
    assert not origin.alive(facts), "the same number, another process"
    assert not origin.alive({})


def test_series_are_ordered_by_their_newest_run(home: Path) -> None:
    keep(home, 20.0, 1, "a" * 40)
    runs.keep(home, runs.case(20.0, 2, command=("python", "other.py")))
    assert [series.program for series in series_of(_entries(home))] == ["train.py", "other.py"]


def _entries(home: Path) -> list[database.Entry]:
    with open_in(home) as history:
        return history.entries()
