"""The one screen of a run or a tune: within its lines, in words for people, with the answers that a reader needs.

The questions of a reader who knows TensorFlow and not flatout: what is slow, which line, what to do, how much it gives,
is it safe, what to type next.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len
from sample_case import sample_case

from flatout.causes import diagnose
from flatout.model.case import Case, Finding, Fix, Interval, Note, Program, Trial, Where, WholeRun
from flatout.report import pull_request, words
from flatout.report.claims import claimed, refused
from flatout.report.formatting import duration, shares
from flatout.report.terminal import headline, render, tune_patch
from flatout.report.terminal import screen as screen_module

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
GALLERY = FIXTURES.parent.parent / "docs" / "gallery" / "cases"
SCREENS = FIXTURES.parent.parent / "docs" / "screens.md"
KEPT = sorted(
    [*FIXTURES.glob("screens/*.json"), *FIXTURES.glob("cases/before-rebuild/*/case.json"), *GALLERY.glob("*.json")]
)
CASES = {
    path.parent.name if path.name == "case.json" else path.stem: path
    for path in KEPT
    if json.loads(path.read_text(encoding="utf-8"))["kind"] in ("run", "tune")
}
LIMITS = [(80, 45), (100, 35), (120, 35)]
"""Columns, and the lines of one screen."""
TERMS = ("reassociated", "numbers:", "function=", "lever ", "semantic")
"""Words of the JSON, which a newcomer cannot know."""


def case_of(name: str) -> Case:
    return Case.from_json(json.loads(CASES[name].read_text(encoding="utf-8")))


def screen(case: Case, width: int = 100) -> str:
    return render(case, "overview", width, color=False, unicode=True, directory=Path("/home/ada/.flatout/cases/one"))


KINDS: dict[str, Callable[[Case], bool]] = {
    "a run": lambda case: case.kind == "run",
    "a tune that has won": lambda case: case.conclusion is not None and case.conclusion.outcome == "won",
    "a tune with nothing worth changing": lambda case: getattr(case.conclusion, "outcome", "") == "done",
    "a tune that is undecided": lambda case: case.conclusion is not None and case.conclusion.outcome == "undecided",
    "a tune that is not the same": lambda case: getattr(case.conclusion, "outcome", "") == "not-the-same",
    "a run with nothing worth changing": lambda case: case.kind == "run" and not case.findings and bool(case.steps),
    "a cause of the run, not of its steps": lambda case: any(one.of == "run" for one in case.findings),
    "a GPU": lambda case: any(one.cause in ("copy-bound", "unfused-kernels") for one in case.findings),
    "a notebook": lambda case: ".ipynb" in " ".join(case.program.command),
    "a job of several ranks": lambda case: len(case.hosts) > 1,
    "a session": lambda case: case.steps is not None and case.steps.kind == "session",
    "predictions": lambda case: case.steps is not None and case.steps.kind == "inference",
    "a program that raises": lambda case: bool(case.program.error) and case.kind == "run",
    "a program that raises in a tune": lambda case: bool(case.program.error) and case.kind == "tune",
    "a program that is killed": lambda case: bool(case.program.signal),
    "a program without a step": lambda case: case.kind == "run" and case.steps is None,
}


def test_there_are_cases_of_ten_programs_and_of_every_kind() -> None:
    cases = [case_of(name) for name in CASES]
    for kind in ("run", "tune"):
        programs = {Path(screen_module.command_words(case).split()[0]).name for case in cases if case.kind == kind}
        assert len(programs) >= 10, (kind, programs)
    assert [kind for kind, holds in KINDS.items() if not any(map(holds, cases))] == []


@pytest.mark.parametrize(("width", "most"), LIMITS)
@pytest.mark.parametrize("name", CASES)
def test_it_is_one_screen(name: str, width: int, most: int) -> None:
    lines = screen(case_of(name), width).splitlines()
    assert 7 <= len(lines) <= most
    assert max(map(cell_len, lines)) <= width


@pytest.mark.parametrize(("width", "most"), LIMITS)
def test_the_run_of_every_cause_is_one_screen(width: int, most: int) -> None:
    paths = sorted(FIXTURES.glob("causes/*/*s.json"))  # shows.json
    assert len(paths) > 50
    too_long = {}
    for path in paths:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept.get("kind") != "run":
            continue
        lines = screen(diagnose(dataclasses.replace(Case.from_json(kept), findings=())), width).splitlines()
        if len(lines) > most or max(map(cell_len, lines)) > width:
            too_long[path.parent.name] = len(lines)
    assert too_long == {}


@pytest.mark.parametrize("name", CASES)
def test_a_number_and_its_unit_stand_in_one_line(name: str) -> None:
    text = "\n".join(line.strip() for line in screen(case_of(name), 80).splitlines())
    assert re.findall(r"\d\n(?:%|ms|s|µs)(?!\w)", text) == []
    assert "\ue000" not in text


@pytest.mark.parametrize(("width", "most"), LIMITS)
def test_a_run_with_everything_is_one_screen(width: int, most: int) -> None:
    text = screen(sample_case(), width)
    assert text.count("\n") <= most
    assert "This run" in text
    assert "Next     flatout tune" in text


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("run-no-tensorflow", "run-no-step")])
def test_it_ends_with_what_to_type(name: str) -> None:
    lines = screen(case_of(name)).splitlines()
    assert any(line.startswith("Next     flatout ") for line in lines[-8:]), lines


@pytest.mark.parametrize("name", CASES)
def test_it_is_told_in_words_for_people(name: str) -> None:
    text = screen(case_of(name))
    assert not [term for term in TERMS if term in text]


def test_the_page_of_screens_shows_no_word_that_readers_stumbled_over() -> None:
    shown = "\n".join(re.findall(r"```text\n(.*?)```", SCREENS.read_text(encoding="utf-8"), re.DOTALL))
    assert len(shown) > 5000
    assert not [term for term in (*TERMS, "interpreter's lock", "record shards") if term in shown]


@pytest.mark.parametrize("width", [80, 120])
def test_the_most_there_can_be_is_still_one_screen(width: int) -> None:
    long = "A sentence that goes on for quite a while, as sentences about programs do. " * 12
    finding = Finding("eager-step", long, Where("/home/ada/train.py", 3, None, "x" * 300), cost_ms=5.0, cost_share=0.4,
                      fixes=(Fix(long),))  # fmt: skip
    won = case_of("tune-won")
    assert won.conclusion is not None
    case = dataclasses.replace(
        won,
        findings=(finding,) * 9,
        notes=(Note("warning", long, long),) * 6,
        patch=won.patch * 40,
        conclusion=dataclasses.replace(won.conclusion, by_hand=(long,) * 5),
        whole_run=dataclasses.replace(won.whole_run or WholeRun(), compared=long, note=long),
    )
    assert screen(case, width).count("\n") <= (45 if width < 100 else 35)
    run = dataclasses.replace(case, kind="run", trials=(), patch="", conclusion=None)
    assert screen(run, width).count("\n") <= (45 if width < 100 else 35)


# ── the answers ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_answers_what_is_slow_where_and_what_to_do() -> None:
    text = " ".join(screen(case_of("run-slow")).split())
    for answer in (
        "79 % of each training step (145.3 ms of 184.9 ms) goes to one cause: the training step runs eagerly",
        "examples/slow_training.py:76",
        "costs 79 % of each step, 145.3 ms; 20.4 s of this run",
        "gives up to about 2.6 times as fast: this run 33.2 s → 12.8 s",
        "(flatout tune tries it and compares the results; expected: same results up to rounding)",
        "Next flatout tune examples/slow_training.py",
    ):
        assert answer in text, answer


def test_a_tune_answers_how_much_it_gives_and_whether_it_is_safe() -> None:
    text = " ".join(screen(case_of("tune-won")).split())
    for answer in (
        "One change makes this run about 1.86 times as fast (1.42 to 2.45, estimated), its training steps 4.04 times "
        "(3.47 to 4.71). The change: trace `train_step` with @tf.function (slow_training.py:76). Same results up to "
        "rounding.",
        "28.3 s → 15.2 s, 1.86 times as fast (1.42 to 2.45) from start to end",
        "between 3.47 and 4.71 with 95 % confidence (22 rounds, with and without the change in turns)",
        "Compared: losses of 10 steps and 43 of 44 variables (the other was not compared)",
        "makes the change; so far nothing is changed",
        "+ @tf.function",
        "39 changes not tried: flatout show --verbose",
    ):
        assert answer in text, answer


STEP = "its training steps 4.04 times as fast (3.47 to 4.71)"
ALSO = "its training steps 4.04 times (3.47 to 4.71)"


@pytest.mark.parametrize(
    ("whole", "begins"),
    [
        (None, f"One change makes {STEP}; what the whole run gains was not measured. The change: trace"),
        (
            WholeRun(Interval(2.0, 1.5, 4.0), estimated=True, note="stopped after 45 s"),
            f"One change makes {STEP}; what the whole run gains is not known, as there was no time to see its end.",
        ),
        (
            WholeRun(Interval(2.0, 1.9, 2.1), pairs=2, complete=True),
            f"One change makes this run 2.00 times as fast (1.90 to 2.10), {ALSO}. The change: trace",
        ),
        (
            WholeRun(Interval(2.0, 1.9, 2.1), pairs=2, complete=True, tenfold=3.5),
            f"One change makes this run 2.00 times as fast (1.90 to 2.10), {ALSO}, "
            "and a run with ten times the steps 3.50 times as fast.",
        ),
        (
            WholeRun(Interval(1.04, 0.93, 1.16), pairs=2, complete=True, tenfold=1.33),
            f"One change makes {STEP}, but a run as short as this one may gain nothing (measured at 1.04 times as "
            "fast, 0.93 to 1.16), and a run with ten times the steps 1.33 times as fast.",
        ),
        (
            WholeRun(Interval(0.8, 0.7, 0.9), pairs=2, complete=True),
            f"One change makes {STEP}, but a run as short as this one is slower (measured at 0.80 times as fast, 0.70 "
            "to 0.90).",
        ),
        (
            WholeRun(None, None, 20.0, 12.0, pairs=1, complete=True, note="its runs make 30 steps, where they made 50"),
            f"One change makes {STEP}; what the whole run gains is not known: its runs make 30 steps, where they made "
            "50. The change",
        ),
    ],
    ids=["no run", "no end", "measured", "tenfold", "nothing", "slower", "not comparable"],
)  # fmt: skip
def test_the_first_line_is_the_claim_for_the_run(whole: WholeRun | None, begins: str) -> None:
    assert headline(dataclasses.replace(case_of("tune-won"), whole_run=whole)).startswith(begins)


def test_a_first_line_says_where_the_first_steps_alone_were_compared() -> None:
    case = case_of("tune-won")
    assert headline(case).endswith("Same results up to rounding.")
    whole = WholeRun(Interval(2.0, 1.9, 2.1), pairs=2, complete=True, compared="only the first steps: over the whole …")
    text = headline(dataclasses.replace(case, whole_run=whole))
    assert text.endswith("Same results up to rounding in its first steps; more could not be compared.")


def test_the_trial_that_a_conclusion_names_is_the_one_that_is_told() -> None:
    case = case_of("tune-not-the-same")
    slower = dataclasses.replace(refused(case) or case.trials[0], levers=("xla",), speedup=Interval(2.0, 1.9, 2.1))
    assert case.conclusion is not None
    named = dataclasses.replace(case.conclusion, stage=slower.stage, levers=slower.levers)
    case = dataclasses.replace(case, trials=(*case.trials, slower), conclusion=named)
    assert refused(case) == slower
    assert "with XLA" in headline(case)


def test_what_is_not_the_same_is_not_proposed() -> None:
    text = headline(case_of("tune-not-the-same"))
    assert text.startswith("No change is proposed. The fastest that was tried: trace `train_step`")
    assert text.endswith("its results differ by more than rounding.")
    assert "times as fast" not in text, "what is refused has no ratio in the first line"
    told = " ".join(screen(case_of("tune-not-the-same")).split())
    assert "A step with it, 3.78 times as fast (2.72 to 4.74), which is not claimed" in told


def test_what_was_refused_is_not_advised() -> None:
    text = screen(case_of("tune-not-the-same"))
    assert "do     nothing yet: its cure was tried, but its results differ by more than rounding" in text
    assert "Decorate the step function" not in text


def test_a_tune_with_nothing_to_change_says_what_was_tried() -> None:
    lines = screen(case_of("tune-done"), 120).splitlines()
    assert "Nothing worth changing: the one change that was tried is not faster." in lines
    assert any(
        line.startswith("Why      The one change tried was not measurably faster, and cannot make it") for line in lines
    )


def test_an_undecided_tune_says_how_to_go_on() -> None:
    text = screen(case_of("tune-undecided"))
    assert "Not decided yet" in text
    assert "Next     flatout tune --resume --budget 15m dqn.py" in text


def test_an_undecided_tune_names_no_lever_by_its_bare_name() -> None:
    table = screen(case_of("tune-undecided")).partition("\nNot decided")[2].partition("What is slow")[0]
    assert re.search(r"run train_on_batch as one graph +1\.05 times as fast \(0\.60 to 2\.59\)\n", table)
    assert re.search(r"let malloc keep freed memory +too few measurements\n", table)
    assert re.search(r"compute in bfloat16 +not tried: no time left\n", table)
    assert len(re.findall("with XLA", table)) == 1
    assert "relax-shapes" not in table


def test_the_changes_that_are_not_decided_are_told_whole_at_80_columns() -> None:
    table = screen(case_of("tune-undecided"), 80).partition("\nNot decided\n")[2].partition("What is slow")[0]
    assert len(table.splitlines()) > 6
    assert "…" not in table


def test_without_a_claim_a_finding_says_what_each_step_and_a_longer_run_could_gain() -> None:
    case = case_of("tune-undecided")
    text = " ".join(screen(case).split())
    assert "gives each step up to about 3.2 times as fast; a run of 10,000 steps about 2 times" in text
    assert case.steps is not None
    assert case.program.seconds is not None
    each, part = case.steps.ms.mean / 1000, case.findings[0].cost_share or 0.0
    start = case.program.seconds - case.steps.count * each
    assert 1000 < start / each <= 10_000  # so its steps take longer than its start
    before, after = start + 10_000 * each, start + 10_000 * each * (1 - part)
    assert f"({duration(1000 * before)} → {duration(1000 * after)}, estimated)" in text


def test_what_costs_the_run_is_not_said_to_speed_up_each_step() -> None:
    case = case_of("predict-tuned")
    assert case.findings[0].of == "run"
    text = " ".join(screen(case).split())
    assert "gives the run, as far as it was seen, up to about 1.2 times as fast do" in text


@pytest.mark.parametrize(("line", "told"), [(33, "Line 33 starts the step; the patch changes line 24."),
                                            (28, "The patch changes line 24."), (24, ""), (25, "")])  # fmt: skip
def test_a_patch_at_another_line_than_its_finding_says_so(line: int, told: str) -> None:
    case = case_of("tune-gpu")
    finding = case.findings[0]
    assert finding.where is not None
    finding = dataclasses.replace(finding, where=dataclasses.replace(finding.where, line=line))
    assert tune_patch.elsewhere(case, finding, claimed(case)) == told
    text = " ".join(screen(dataclasses.replace(case, findings=(finding,))).split())
    assert ("the patch changes" in text.lower()) == bool(told)
    assert told in text


def test_what_the_claim_does_not_cure_is_not_said_to_be_patched() -> None:
    case = case_of("tune-gpu")
    other = dataclasses.replace(case.findings[0], fixes=(Fix("Do it.", lever="bf16"),))
    assert tune_patch.elsewhere(case, other, claimed(case)) == ""


def test_a_small_gain_is_not_one_times() -> None:
    text = " ".join(screen(case_of("run-gpu")).split())
    assert "gives up to 1.04 times as fast: this run 17.7 s → 17.0 s" in text


def test_a_run_that_may_gain_nothing_says_so() -> None:
    text = " ".join(screen(case_of("tune-gpu")).split())
    assert "a run as short as this one may gain nothing" in text
    assert "The longer the run, the more it gains." in text


def test_a_cause_is_told_to_cost_as_much_as_its_cure_has_saved() -> None:
    case = case_of("tune-gpu")
    claim = next(trial for trial in case.trials if trial.status == "won" and trial.levers == case.tuned)
    assert claim.speedup is not None
    assert case.findings[0].cost_share is not None
    assert 1 / (1 - case.findings[0].cost_share) < claim.speedup.low
    assert "at least 51 % of each step" in screen(case)
    assert "at least" not in screen(case_of("tune-long-patch"))


def test_the_patch_is_applied_where_its_paths_begin() -> None:
    case = case_of("tune-gpu")
    assert "patch -p1 -d /home/ada/benchmarks/gpu/slow" in screen(case)
    here = dataclasses.replace(case.program, directory="/home/ada/benchmarks/gpu/slow")
    assert "patch -p1   makes" in screen(dataclasses.replace(case, program=here))


def test_the_patch_of_modules_beside_the_program_names_their_directory() -> None:
    case = case_of("tune-gpu")
    program = dataclasses.replace(case.program, directory="/home/ada/run", command=("python", "/home/ada/run/main.py"))
    where = Where("/home/ada/lib/nets/trainer.py", 3)
    found = (dataclasses.replace(case.findings[0], where=where), *case.findings[1:])
    patch = "--- a/lib/nets/trainer.py\n+++ b/lib/nets/trainer.py\n@@ -1 +1 @@\n-x\n+y\n"
    case = dataclasses.replace(case, program=program, findings=found, patch=patch)
    assert "patch -p1 -d /home/ada   makes" in screen(case)


def test_a_changed_line_of_the_patch_is_never_cut() -> None:
    long = "+    loss = train_step(" + ", ".join(f"argument_{number}" for number in range(20)) + ")"
    case = dataclasses.replace(case_of("tune-won"), patch=f"--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n{long}\n")
    rows = [row.strip() for row in screen(case).splitlines() if row.strip().startswith("+ ")]
    assert "".join(row.removeprefix("+") for row in rows).replace(" ", "") == long.removeprefix("+").replace(" ", "")


def test_the_parts_of_a_step_add_up_to_a_hundred() -> None:
    parts = shares({"input": 69.6, "python": 11.2, "compute": 14.6, "idle": 4.6, "copy": 0.001})
    assert sum(int(text.split()[0]) for text in parts.values() if not text.startswith("<")) == 100
    assert parts["copy"] == "<1 %"
    assert shares({"input": 0.0}) == {}


def test_a_program_that_failed_is_not_to_be_tuned_next() -> None:
    text = screen(case_of("raises_after_20_steps"))
    assert "The program failed: DataIsBroken" in text
    assert "flatout tune" not in text


def test_what_is_spent_once_and_when_it_pays() -> None:
    won = case_of("tune-won")
    whole = WholeRun(Interval(1.5, 1.4, 1.6), before_seconds=30.0, after_seconds=20.0, pairs=2, complete=True, steps=96)
    text = " ".join(screen(dataclasses.replace(won, whole_run=whole)).split())
    assert re.search(
        r"About 3\.\d+ s is spent once \(tracing, compiling\), and earned back after about 2\d steps\.", text
    )
    one_pair = dataclasses.replace(whole, pairs=1)
    assert "earned back" not in screen(dataclasses.replace(won, whole_run=one_pair))


@pytest.mark.parametrize("name", ["run-slow", "tune-won"])
def test_without_colour_and_without_unicode_it_says_the_same(name: str) -> None:
    case = case_of(name)
    coloured = render(case, "overview", 100, color=True, unicode=True)
    plain = render(case, "overview", 100, color=False, unicode=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured).split() == plain.split()
    ascii_only = render(case, "overview", 100, color=False, unicode=False)
    assert ascii_only.isascii()
    assert ascii_only.count("\n") == plain.count("\n")


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("lever", "told"),
    [
        ("function=/home/ada/train.py:26", "trace `step` with @tf.function (train.py:26)"),
        ("function=/home/ada/train.py:27", "trace the function with @tf.function (train.py:27)"),
        ("function=parts", "trace calls of models, losses and optimizers with tf.function"),
        ("steps-per-execution=16", "run 16 steps in one call (steps_per_execution)"),
        ("allocator=glibc-keep", "let malloc keep freed memory"),
        ("no-such-cure=3", "no-such-cure=3"),
    ],
)
def test_a_lever_in_words(lever: str, told: str) -> None:
    assert words.lever(lever, {"/home/ada/train.py:26": "step"}) == told


def test_every_cure_says_what_a_person_does() -> None:
    from flatout.cures import catalogue

    cures = catalogue()
    assert cures
    for name, cure in cures.items():
        told = [cure.spec.does] if isinstance(cure.spec.does, str) else list(cure.spec.does.values())
        assert told, name
        assert all(told), name
        for text in told:
            assert text[0].islower() or text[0] == "{", name
            assert not text.endswith("."), name
            assert set(re.findall(r"\{(\w+)\}", text)) <= {"value", "function", "place"}, name


def test_every_word_of_the_vocabulary_has_words_for_people() -> None:
    from typing import get_args

    from flatout.model.vocabulary import Equivalence, ParityVerdict

    known = {word for kind in (*get_args(ParityVerdict), Equivalence) for word in get_args(kind) or (kind,)}
    assert {word for word in known if isinstance(word, str) and word} <= words.AGREEMENTS.keys()


def test_the_function_is_named_from_the_source_while_it_is_there(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("import tensorflow\n\ndef train_step(x):\n    return x\n")
    assert words.change_here([f"function={program}:3"]) == "trace `train_step` with @tf.function (train.py:3)"


def test_what_was_compared_without_the_sizes_of_deviations() -> None:
    text = (
        "with the same random numbers in both, losses of 10 steps and 43 of 44 variables agree (losses to 6e-05, "
        "variables to 0.04 of their movement); from step 11 on rounding alone makes losses differ"
    )
    assert words.compared(text) == (
        "Losses of 10 steps and 43 of 44 variables (the other was not compared) agree. From step 11 on losses tell "
        "nothing, as two runs without a change differ as much by rounding alone (both sides drew the same random "
        "numbers)."
    )


def test_a_trial_is_told_without_what_the_program_had_already() -> None:
    assert words.trial(Trial(("xla", "cache"), "won", stage="single")) == "cache the dataset in memory"


# ── the text of a pull request ───────────────────────────────────────────────────────────────────────────────────────


def test_a_pull_request_has_verdict_table_patch_proof_and_the_rest() -> None:
    text = pull_request.render(case_of("tune-won"))
    parts = (
        "### One change makes this run about 1.86",
        "| the whole run | 28.3 s | 15.2 s |",
        "| a step | 181.0 ms | 44.8 ms |",
        "```diff\n--- a/",
        "**How it was proved.**",
        "Repeat it: `flatout tune",
        "<details>",
        "- accumulate: ",
        "</details>",
    )
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_a_run_that_was_cut_short_is_not_called_a_whole_one() -> None:
    case = case_of("eager-loop-tuned")
    assert "| the run as far as it was seen | 109 s | 45.4 s |" in pull_request.render(case)
    assert "The run as far as it was seen: 109 s" in pull_request.commit_message(case, "flatout tune x.py")


@pytest.mark.parametrize(
    ("kind", "command", "told"),
    [
        ("run", "/usr/bin/python3 train.py --epochs 3", "flatout run train.py --epochs 3"),
        ("tune", "/usr/bin/python3 tune --epochs 3", "flatout tune tune --epochs 3"),
        ("trace", "trace logs/a", "flatout trace logs/a"),
        ("optimize", "optimize --budget 2m model.keras", "flatout optimize --budget 2m model.keras"),
        ("check", "flatout check .", "flatout check ."),
        ("data", "/x/flatout/__main__.py data convert t.csv out", "flatout data convert t.csv out"),
        ("data", "/usr/bin/python3 train.py", "flatout data inspect train.py"),
    ],
)
def test_a_pull_request_repeats_what_was_typed(kind: str, command: str, told: str) -> None:
    case = Case(kind, Program(command=tuple(command.split())), verdict="Done.")
    assert f"Repeat it: `{told}`" in pull_request.render(case)


@pytest.mark.parametrize("name", CASES)
def test_every_case_has_a_pull_request(name: str) -> None:
    text = pull_request.render(case_of(name))
    assert text.startswith("### ")
    assert "reassociated" not in text


def test_a_patch_cannot_end_its_own_fence() -> None:
    case = dataclasses.replace(case_of("tune-won"), patch="+x\n```\n</details>@ada\n")
    assert "````diff\n+x\n```\n" in pull_request.render(case)


def test_the_parts_of_a_run_are_told_apart_without_colour_and_without_unicode() -> None:
    from flatout.report.terminal import output, run

    glyphs = [glyph for glyph, _ in run.COLOURS.values()]
    assert len(glyphs) == len({*glyphs}) == len({glyph.translate(output._ASCII) for glyph in glyphs})
    assert all(glyph.translate(output._ASCII).isascii() for glyph in glyphs)
