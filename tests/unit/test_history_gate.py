"""The gate: which baseline is taken, and with what exit code it is left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import runs
from typer.testing import CliRunner

from flatout import store
from flatout.cli import make_app
from flatout.model.errors import FlatoutError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import coverage

runner = CliRunner()


class Project:
    """A repository with a program, and runs of its commits."""

    def __init__(self, root: Path) -> None:
        self.root, self.home, self.seed = root, root / store.HOME, 0
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str) -> str:
        settings = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        done = subprocess.run(["git", *settings, *words], cwd=self.root, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self) -> str:
        self.git("commit", "-q", "--allow-empty", "-m", f"{self.seed}")
        return self.git("rev-parse", "HEAD")

    def runs(self, commit: str, median: float, count: int = 2, branch: str = "main", program: str = "train.py") -> None:
        for _ in range(count):
            self.seed += 1
            environment = runs.source(commit, branch)
            runs.keep(self.home, runs.case(median, self.seed, command=("python", program), environment=environment))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    return Project(tmp_path)


def gate(*words: str) -> tuple[int, dict[str, object]]:
    done = runner.invoke(make_app(), ["gate", "--json", "-", *words])
    return done.exit_code, json.loads(done.output)


def test_nothing_slower_is_let_through(project: Project) -> None:
    project.runs(project.commit(), 20.0)
    project.git("checkout", "-q", "-b", "feature")
    project.runs(project.commit(), 20.2, branch="feature")
    code, told = gate("--baseline", "main")
    assert code == 0, told
    assert "No regression" in str(told["verdict"])


def test_a_regression_is_stopped(project: Project) -> None:
    project.runs(project.commit(), 20.0)
    project.git("checkout", "-q", "-b", "feature")
    project.runs(project.commit(), 25.0, branch="feature")
    code, told = gate("--baseline", "main", "--max-regression", "5%")
    assert code == 1
    assert told["exit_code"] == 1
    assert gate("--max-regression", "40%")[0] == 0


def test_the_newest_commit_of_the_baseline_that_was_run_is_taken(project: Project) -> None:
    project.runs(project.commit(), 40.0)
    project.runs(project.commit(), 20.0)
    project.commit()  # nobody ran this one
    project.git("checkout", "-q", "-b", "feature")
    project.runs(project.commit(), 25.0, branch="feature")
    assert gate()[0] == 1


def test_what_is_not_on_the_baseline_is_not_compared_with(project: Project) -> None:
    project.commit()
    project.git("checkout", "-q", "-b", "other")
    project.runs(project.commit(), 10.0, branch="other")
    project.git("checkout", "-q", "main")
    project.runs(project.commit(), 20.0)
    code, told = gate()
    assert code == 3, told
    assert runner.invoke(make_app(), ["gate", "--allow-missing"]).exit_code == 0


def test_a_push_to_the_baseline_is_compared_with_what_was_there_before(project: Project) -> None:
    project.runs(project.commit(), 20.0)
    project.runs(project.commit(), 26.0)
    assert gate("--baseline", "main")[0] == 1


def test_a_commit_that_is_run_again_is_the_newest_state(project: Project) -> None:
    main = project.commit()
    project.git("checkout", "-q", "-b", "feature")
    first, second = project.commit(), project.commit()
    project.runs(main, 20.0)
    project.runs(first, 20.0, branch="feature")
    project.runs(second, 30.0, branch="feature")
    assert gate()[0] == 1
    project.runs(first, 20.0, branch="feature")
    code, told = gate()
    assert code == 0, told


def test_every_program_of_the_commit_is_judged(project: Project) -> None:
    first = project.commit()
    project.runs(first, 20.0)
    project.runs(first, 50.0, program="serve.py")
    second = project.commit()
    project.runs(second, 26.0)
    project.runs(second, 50.0, program="serve.py")
    code, told = gate()
    assert code == 1
    assert len(told["programs"]) == 2  # type: ignore[arg-type]
    assert gate("--program", "serve.py")[0] == 0


def test_without_git_the_name_of_the_branch_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    home = tmp_path / store.HOME
    for seed, (commit, branch, median) in enumerate([("a", "main", 20.0), ("b", "feature", 27.0)]):
        runs.keep(home, runs.case(median, seed, environment=runs.source(commit * 40, branch)))
    assert gate("--baseline", "main")[0] == 1


def test_the_summary_of_the_step_is_written(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = project.root / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    project.runs(project.commit(), 20.0)
    project.runs(project.commit(), 26.0)
    done = runner.invoke(make_app(), ["gate"])
    assert done.exit_code == 1
    told = summary.read_text()
    assert told.startswith("before\n")
    assert "❌ flatout gate" in told
    assert "| **step** |" in told


def test_a_summary_that_cannot_be_written_is_no_regression(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.root / "gone" / "summary.md"))
    project.runs(project.commit(), 20.0)
    project.runs(project.commit(), 20.0)
    done = runner.invoke(make_app(), ["gate", "--quiet"])
    assert done.exit_code == 0, done.output
    assert "was not written" in done.stderr


def test_a_name_is_shown_without_what_a_terminal_obeys(project: Project) -> None:
    project.runs(project.commit(), 20.0, program="tr\u202eain\x1b]0;title\x07.py")
    done = runner.invoke(make_app(), ["gate", "--baseline", "v1"], color=True)
    assert done.exit_code == 3, done.output
    assert "train.py at v1 on this" in done.output


def test_a_program_that_is_named_wrongly_does_not_pass(project: Project) -> None:
    for _ in range(2):
        project.runs(project.commit(), 20.0)
    assert gate("--program", "train.py")[0] == 0
    with pytest.raises(FlatoutError, match=r"no runs of trian\.py to judge"):
        runner.invoke(make_app(), ["gate", "--program", "train.py", "--program", "trian.py"], catch_exceptions=False)


def test_without_runs_it_says_so(project: Project) -> None:
    project.home.mkdir()
    with pytest.raises(FlatoutError, match="no runs to judge"):
        runner.invoke(make_app(), ["gate"], catch_exceptions=False)
    with pytest.raises(FlatoutError, match="--max-regression"):
        runner.invoke(make_app(), ["gate", "--max-regression", "lots"], catch_exceptions=False)


def test_a_baseline_that_looks_like_an_option_is_none(project: Project) -> None:
    project.runs(project.commit(), 20.0)
    assert gate("--baseline=--output=/tmp/x")[0] == 3


def test_of_many_programs_none_closes_the_gate_by_luck() -> None:
    """Seeded. Judged one by one, some program of ten was called slower in 31 % and in 87 % of such builds."""
    assert coverage.gate_cell((0.03, 3, 0.0), 60).claimed <= 3
    assert coverage.gate_cell((0.06, 1, 0.0), 60).claimed <= 3
    assert coverage.gate_cell((0.03, 3, 0.2), 20).covered == 20, "what got slower is found among the others"


def test_one_program_alone_is_judged_as_by_compare(project: Project) -> None:
    project.runs(project.commit(), 20.0)
    project.runs(project.commit(), 24.0)
    _, told = gate("--baseline", "main")
    assert [one["comparison"]["programs"] for one in told["programs"]] == [1]


def test_alarms_of_several_programs_are_certain_for_all_of_them(project: Project) -> None:
    first, second = project.commit(), project.commit()
    for number in range(6):
        project.runs(first, 20.0, program=f"{number}.py")
        project.runs(second, 20.0 if number else 30.0, program=f"{number}.py")
    code, told = gate("--baseline", first)
    assert code == 1
    assert [one["comparison"]["regressed"] for one in told["programs"]].count(True) == 1
    assert {one["comparison"]["programs"] for one in told["programs"]} == {6}
