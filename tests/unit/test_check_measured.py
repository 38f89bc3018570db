"""What a run says about findings in source: their cost, that they are harmless, or nothing."""

from __future__ import annotations

import dataclasses
import datetime
import os
import subprocess
import sys
from pathlib import Path

import pytest

import flatout
from flatout import store
from flatout.check.driver import Report
from flatout.check.measured import MeasuredRun, apply
from flatout.check.output import View
from flatout.check.output.case import as_case
from flatout.check.output.concise import render
from flatout.check.workflow import Request, judged_by_run
from flatout.model.case import Case, Finding, Note, Program, Where
from flatout.model.errors import InvalidOption
from flatout.model.observed import Distribution, Split, Steps
from flatout.source.analysis.patterns import Diagnostic

EAGER = Diagnostic("eager-step", "tape-outside-function", 3, 1, 3, 9, "It runs eagerly.", "Trace it.", function="step")
SYNC = Diagnostic("host-sync", "pull-every-step", 7, 1, 7, 9, "A value is read back.", "Read it later.")
SERIAL = Diagnostic("serial-stateful-map", "random-map", 9, 1, 9, 9, "One core.", "Use seeds.")
WIDE = Diagnostic("float64", "explicit", 11, 1, 11, 9, "Twice as wide.", "Use float32.")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "train.py"
    file.write_text("import tensorflow as tf\n")
    os.utime(file, (1_700_000_000, 1_700_000_000))
    return file


def case_of(program: Path, *findings: Finding, input_ms: float = 0.0) -> Case:
    split = Split(input=input_ms, python=1.0, compute=99.0 - input_ms)
    steps = Steps(100, "fit", Distribution(100.0, 100.0, 100.0, 100.0), split)
    started = datetime.datetime.fromtimestamp(1_800_000_000, datetime.timezone.utc).isoformat()
    made = Program(("python", "train.py"), str(program.parent), started, 10.0, 0)
    return Case("run", made, steps=steps, findings=findings)


def found(program: Path, cause: str, line: int, share: float, function: str | None = None) -> Finding:
    return Finding(cause, "", Where(str(program), line, function), cost_ms=100 * share, cost_share=share, of="run")


def report_of(program: Path, *items: Diagnostic) -> Report:
    return Report(files={str(program): list(items)}, checked=1)


def verdicts(case: Case, program: Path, *items: Diagnostic) -> list[str]:
    run = MeasuredRun(case)
    return [run.judge(str(program), item).verdict for item in items]


def test_costs_rank_and_harmless_ones_go(program: Path) -> None:
    case = case_of(program, found(program, "host-sync", 7, 0.12), found(program, "float64", 99, 0.03))
    other = dataclasses.replace(SYNC, line=20, end_line=20)
    report = report_of(program, other, SERIAL, SYNC)
    apply(report, case, "train-1")
    assert [(item.line, item.measured_share) for _, item in report.all()] == [(7, 0.12), (20, None)]
    assert report.left_out == 1
    text = render(View(report, program.parent, {}))
    assert "(12 % of the run)" in text.splitlines()[0]
    assert "note: 1 left out, as train-1 showed them to be harmless (1: its steps wait 0.0 % of it for" in text
    assert "note: train-1 does not decide 1: 1 of a kind, or at a place, that this run does not tell." in text
    first = as_case(View(report, program.parent, {})).findings[0]
    assert (first.cost_share, first.of, first.estimate) == (0.12, "run", "measured in a run of the program")


def test_a_finding_of_the_same_function_is_the_same(program: Path) -> None:
    case = case_of(program, found(program, "eager-step", 5, 0.4, "step"))
    run = MeasuredRun(case)
    assert run.judge(str(program), EAGER).share == 0.4


def test_under_one_percent_is_harmless(program: Path) -> None:
    assert verdicts(case_of(program, found(program, "eager-step", 3, 0.004)), program, EAGER) == ["harmless"]


def test_what_nothing_measures_is_not_decided(program: Path) -> None:
    quiet = case_of(program)
    assert verdicts(quiet, program, EAGER, SYNC, SERIAL) == ["harmless", "harmless", "little input"]
    lost = dataclasses.replace(quiet, notes=(Note("warning", "A view is lost, host syncs: it failed"),))
    assert verdicts(lost, program, EAGER, SYNC, SERIAL) == ["not measured"] * 3
    assert quiet.steps is not None
    untraced = dataclasses.replace(quiet, steps=dataclasses.replace(quiet.steps, split_ms=None))
    assert verdicts(untraced, program, EAGER, SERIAL) == ["not measured"] * 2


def test_a_slow_step_may_hide_a_slow_pipeline(program: Path) -> None:
    case = case_of(program, found(program, "eager-step", 3, 0.5))
    assert verdicts(case, program, EAGER, SERIAL) == ["costs", "hidden"]
    report = report_of(program, SERIAL)
    apply(report, case, "train-1")
    assert report.remarks == ["train-1 does not decide 1: 1 may be hidden behind eager-step."]


def test_other_files_and_changed_ones_are_not_decided(program: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text("")
    case = case_of(program)
    assert verdicts(case, other, EAGER) == ["other file"]
    os.utime(program, (1_800_000_100, 1_800_000_100))
    assert verdicts(case, program, EAGER) == ["changed"]


def test_only_runs_tell() -> None:
    with pytest.raises(InvalidOption, match="flatout run"):
        MeasuredRun(Case("optimize"))


def test_a_kept_case_or_a_run_but_not_both(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(program.parent)
    case = case_of(program, found(program, "eager-step", 3, 0.4))
    directory = store.new_directory("train")
    store.write_case(case, directory)
    kept = report_of(program, EAGER)
    judged_by_run(kept, Request(from_case=str(directory)), lambda program: None)
    assert kept.measured_in == directory.name
    asked: list[tuple[str, ...]] = []

    def run(program: tuple[str, ...]) -> Case | None:
        asked.append(program)
        return case if program[0] == "train.py" else None

    confirmed = report_of(program, EAGER)
    judged_by_run(confirmed, Request(confirm=("train.py", "--epochs", "1")), run)
    assert asked == [("train.py", "--epochs", "1")]
    assert next(confirmed.all())[1].measured_share == 0.4
    nothing = report_of(program, EAGER)
    judged_by_run(nothing, Request(confirm=("no_steps.py",)), run)
    assert nothing.count == 1
    assert "decides nothing" in nothing.remarks[0]
    for request in (Request(from_case="latest", confirm=("a.py",)), Request(from_case="latest", fix=True)):
        with pytest.raises(InvalidOption):
            judged_by_run(nothing, request, run)


def test_the_same_from_python(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(program.parent)
    program.write_text("import tensorflow as tf\nmodel = tf.keras.Model()\nmodel.compile(run_eagerly=True)\n")
    case = flatout.check(program)
    assert case.kind == "check"
    assert [item.cause for item in case.findings] == ["run-eagerly"]


def test_confirm_runs_the_program_and_keeps_standard_output_for_the_findings(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys\nprint('from the program', *sys.argv[1:])\n")
    (tmp_path / "model.py").write_text("import tensorflow as tf\nmodel.compile(run_eagerly=True)\n")
    command = [sys.executable, "-m", "flatout", "check", "--no-cache", "--confirm", "train.py --epochs 1", "model.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "from the program --epochs 1" in done.stderr
    assert "from the program" not in done.stdout
    assert done.stdout.startswith("model.py:2:")
    assert "note: The run of train.py --epochs 1 showed no steps of TensorFlow, so it decides nothing." in done.stdout
