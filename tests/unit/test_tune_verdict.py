"""The four outcomes of a tune, and what keeps each from being said too early."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flatout.model.case import (
    Case,
    Distribution,
    Finding,
    Fix,
    Interval,
    Program,
    Split,
    Steps,
    Trial,
    Where,
    WholeRun,
)
from flatout.model.evidence.outcomes import LeverSkipped
from flatout.model.vocabulary import INTERRUPTED, WHILE_TUNED
from flatout.report.terminal import tune_screen
from flatout.tune.conclusions import TOO_SHORT
from flatout.tune.request import TuneRequest
from flatout.tune.verdict import command, conclude, concluded

REQUEST = TuneRequest("train.py", ("--epochs", "3"), budget=240.0)
STEPS = Steps(100, "batches of Keras fit", Distribution(10.0, 9.0, 11.0, 10.0))
SAME = Interval(1.0, 0.95, 1.05)
CLOSED = Trial(("cache",), "noise", Interval(1.0, 0.9, 1.1), rounds=9)


def trial(status: str = "won", equivalence: str = "exact", **more: object) -> Trial:
    return Trial(("xla",), status, Interval(2.0, 1.9, 2.1), equivalence=equivalence, **more)  # type: ignore[arg-type]


def case(*trials: Trial, **more: object) -> Case:
    return Case("tune", steps=STEPS, trials=trials, **more)  # type: ignore[arg-type]


def outcome(found: Case, problem: str = "") -> tuple[str, str]:
    made = concluded(found, REQUEST, problem)
    assert made.conclusion is not None
    return made.conclusion.outcome, made.verdict


def test_a_change_that_was_tried_in_whole_runs_counts_as_tried():
    tried = replace(CLOSED, levers=("background-checkpoint",), stage="run", rounds=3)
    word, told = outcome(case(tried))
    assert word == "done"
    assert "of 1 changes tried, none was faster beyond the noise, and none can give more than 1.10 ×" in told
    still_open = replace(tried, speedup=Interval(1.1, 0.96, 1.26), rounds=1)
    word, told = outcome(case(still_open))
    assert word == "undecided"
    assert "background-checkpoint 1.10 × [0.96, 1.26]" in told


def test_won_says_step_and_whole_run_side_by_side():
    claim = replace(trial(stage="combination", parity="exact"), speedup=Interval(10.9, 9.6, 11.5))
    whole = WholeRun(Interval(2.35, 2.1, 2.6), None, 20.4, 8.7, pairs=2, complete=True, steps=700, patched=True)
    word, told = outcome(case(trial(), claim, tuned=("xla",), whole_run=whole))
    assert word == "won"
    assert told.startswith(
        "The run is 2.35 times as fast [2.10, 2.60], a step 10.90 times as fast [9.60, 11.50], with xla; numbers: "
        "exact."
    )
    assert "Whole run 20.4 s → 8.7 s (2.35 × [2.10, 2.60])." in told
    told = outcome(case(trial(), claim, tuned=("xla",), whole_run=replace(whole, tenfold=6.5)))[1]
    assert told.startswith("The run is 2.35 times as fast [2.10, 2.60], 6.50 times for ten times as many steps, a step")
    guessed = replace(whole, estimated=True, complete=False, note="stopped after 9 s and 80 steps, as the time was up")
    told = outcome(case(trial(), claim, tuned=("xla",), whole_run=guessed))[1]
    assert told.startswith("Steps are 10.90 times as fast [9.60, 11.50] (what the run gains is not known: its end was")
    assert "Of the whole run" in told
    assert "estimated" in told
    assert "stopped after 9 s" in told


MEASURED = WholeRun(Interval(2.35, 2.1, 2.6), None, 20.4, 8.7, pairs=2, complete=True, steps=700)


@pytest.mark.parametrize(
    "whole",
    [
        None,
        WholeRun(),
        MEASURED,
        replace(MEASURED, estimated=True, pairs=0),
        replace(MEASURED, speedup=Interval(1.04, 0.93, 1.16), tenfold=3.0),
        replace(MEASURED, speedup=Interval(0.8, 0.7, 0.9)),
        replace(MEASURED, complete=False, estimated=True, note="stopped after 9 s"),
        replace(MEASURED, complete=False, speedup=None, note="stopped after 9 s"),
        replace(MEASURED, speedup=None, note="its runs make 300 steps, where they made 500"),
    ],
    ids=["none", "nothing", "measured", "estimated", "no gain", "slower", "cut", "cut without ratio", "not comparable"],
)
def test_the_first_line_claims_what_the_verdict_claims(whole):
    claim = trial(stage="combination", parity="exact")
    made = concluded(case(trial(), claim, tuned=("xla",), whole_run=whole), REQUEST)
    first, told = tune_screen.headline(made), made.verdict
    assert ("makes this run" in first) == told.startswith("The run is")
    for said in ("is slower", "may gain nothing", "is not known: its runs make 300 steps, where they made 500"):
        assert (said in first) == (said in told), said
    assert ("what the whole run gains" in first) == ("what the run gains is not known" in told)
    assert made.conclusion is not None
    assert (made.conclusion.stage, made.conclusion.levers) == ("combination", ("xla",))


def test_what_is_refused_is_the_same_in_the_first_line_and_in_the_verdict():
    """A trial that is within the noise beside one that computes something else."""
    noise = Trial(("cache",), "noise", Interval(3.0, 1.01, 9.0), rounds=4)
    other = trial("failed", parity="failed", note="weights after 1 step differ by 1 of their movement")
    made = concluded(case(noise, other), REQUEST)
    assert "not claimed: xla 2.00 × [1.90, 2.10]" in made.verdict
    assert made.conclusion is not None
    assert (made.conclusion.stage, made.conclusion.levers) == ("single", ("xla",))
    first = tune_screen.headline(made)
    assert "times as fast" not in first
    assert "XLA" in first


def test_a_confirmation_that_did_not_come_to_the_end_of_the_program_is_no_claim():
    fallen = trial("failed", stage="combination", parity="exact", note="the whole program fails: IndexError: pop")
    word, told = outcome(case(trial(), fallen))
    assert word == "not-the-same"
    assert "IndexError" in told
    assert outcome(case(trial(), trial(stage="combination", parity="exact")))[0] != "won", "nothing is tuned with it"


def test_faster_but_not_the_same_is_never_called_nothing():
    vae = trial("failed", parity="failed", note="weights after 1 step differ by 1 of their movement")
    word, told = outcome(case(vae, CLOSED))
    assert word == "not-the-same"
    assert "2.00 × [1.90, 2.10]" in told
    assert "not claimed" in told
    assert "differ by 1 of their movement" in told
    assert outcome(case(trial(equivalence="precision", parity="precision"), CLOSED))[0] == "not-the-same"
    assert outcome(case(trial("noise", parity="unknown"), CLOSED))[0] == "not-the-same"


@pytest.mark.parametrize(
    "found",
    [
        case(Trial(("cache",), "noise", None, rounds=3)),
        case(Trial(("cache",), "noise", Interval(1.51, 0.87, 2.80), rounds=20)),
        case(Trial(("cache",), "noise", Interval(1.0, 0.06, 7.43), rounds=20)),
        case(CLOSED, evidence=(LeverSkipped("xla", note="no time left for it: a larger --budget tries it"),)),
        case(trial()),
        case(trial(), replace(trial("noise", stage="combination"), speedup=None)),
        case(CLOSED, findings=(Finding("eager-step", "…", cost_share=0.6, fixes=(Fix("…", lever="function"),)),)),
        case(findings=(Finding("eager-step", "…", cost_share=0.6, fixes=(Fix("…", lever="function"),)),)),
    ],
    ids=["no-interval", "promising", "wide", "no-time", "unconfirmed", "half-confirmed", "cure-untried", "none-tried"],
)
def test_nothing_is_done_while_something_is_open(found):
    word, told = outcome(found)
    assert word == "undecided"
    assert "flatout tune --resume --budget 15m train.py --epochs 3" in told


def test_done_says_how_that_is_known():
    word, told = outcome(case(CLOSED, Trial(("xla",), "lost", Interval(0.5, 0.4, 0.6), rounds=9)))
    assert (word, "none can give more than 1.10 ×" in told) == ("done", True)
    bound = Trial(("free-input",), "noise", Interval(1.01, 1.0, 1.02), stage="bound", rounds=7)
    computing = replace(STEPS, split_ms=Split(compute=9.8, python=0.2))
    word, told = outcome(replace(case(bound, CLOSED), steps=computing))
    assert word == "done"
    assert "an input that costs nothing would give 1.01 × [1.00, 1.02]" in told
    assert "computing is 98% of a step" in told
    assert outcome(case())[0] == "done", "no finding, no lever that changes anything"


def test_done_names_what_failed_and_what_did_not_answer():
    fell = [Trial(("xla",), "failed"), Trial(("prefetch",), "timeout"), Trial(("onednn",), "failed")]
    assert "(xla, onednn failed; prefetch did not answer in time)" in outcome(case(CLOSED, *fell))[1]
    assert "(xla failed)" in outcome(case(CLOSED, fell[0]))[1]


def test_a_gain_that_the_confirmation_did_not_show_is_not_passed_over():
    word, told = outcome(case(trial(), Trial(("xla",), "noise", SAME, "exact", stage="combination", rounds=9), CLOSED))
    assert word == "done"
    assert "xla was faster at first, and the confirmation did not show it; of 1 other changes tried" in told
    broken = Trial(("xla",), "failed", None, stage="combination", note="the program failed: MemoryError")
    word, told = outcome(case(trial(), broken, CLOSED))
    assert word == "not-the-same"
    assert "MemoryError" in told


def test_a_finding_without_a_cure_that_was_tried_shows_what_to_write():
    where = Where("train.py", 12, "main", "action = model.predict(state)")
    fix = Fix("Call the model directly.", lever="direct-predict")
    finding = Finding("predict-in-loop", "…", where, cost_share=0.8, fixes=(fix,))
    skipped = LeverSkipped("direct-predict", note="it found nothing to change in this program")
    word, told = outcome(case(CLOSED, findings=(finding,), evidence=(skipped,)))
    assert word == "undecided"
    assert "predict-in-loop costs 80% of each step at train.py:12" in told
    assert "found nothing to change" in told
    assert "by hand: Call the model directly" in told
    tried = replace(CLOSED, levers=("direct-predict",))
    assert outcome(case(tried, findings=(finding,)))[0] == "done"


def test_a_cure_with_which_the_program_breaks_is_not_called_nothing():
    fix = Fix("Decorate the step with @tf.function.", lever="function")
    finding = Finding("eager-step", "…", Where("train.py", 13), cost_share=0.9, fixes=(fix,))
    broken = Trial(("function=train.py:13",), "failed", None, note="the program failed: AttributeError: no __code__")
    word, told = outcome(case(broken, CLOSED, findings=(finding,)))
    assert word == "undecided"
    assert "the program does not run with its cure (function: the program failed: AttributeError" in told
    assert "by hand: Decorate the step" in told


def test_levers_that_fail_together_are_not_decided_by_that():
    cache = replace(trial(), levers=("cache",))
    together = replace(trial("failed", stage="combination", note="MemoryError"), levers=("xla", "cache"), speedup=None)
    alone = replace(trial("noise", stage="combination"), speedup=SAME)
    word, told = outcome(case(trial(), cache, together, alone))
    assert word == "undecided"
    assert told.startswith("Undecided: cache was faster, and there was no time to confirm it.")
    word, told = outcome(case(trial(), cache, together, alone, replace(alone, levers=("cache",))))
    assert word == "done"


def test_a_confirmation_that_did_not_answer_in_time_decides_nothing():
    """Ten other programs had the processors: that is no other result."""
    late = Trial(("xla",), "timeout", None, stage="combination", note="no answer in 116 s, starting up")
    word, told = outcome(case(trial(), late))
    assert word == "undecided"
    assert "there was no time to confirm it" in told
    assert "Decide it: flatout tune --resume" in told


def test_more_time_is_not_offered_where_a_cure_was_refused_for_good():
    fix = Fix("Rewrite that Python with TensorFlow ops.", lever="cache")
    finding = Finding("python-in-pipeline", "…", Where("train.py", 22), cost_share=0.5, fixes=(fix,))
    refused = Trial(("cache",), "failed", None, note="cache gave up: element 0 has other values; a cache behind batch")
    found = conclude(case(refused, findings=(finding,)), REQUEST)
    assert (found.outcome, found.command) == ("undecided", "")
    assert found.by_hand == ("train.py:22: Rewrite that Python with TensorFlow ops",)
    assert "(cache: gave up: element 0 has other values)" in found.reason
    late = LeverSkipped("xla", note="no time left for it: a larger --budget tries it")
    assert conclude(case(refused, findings=(finding,), evidence=(late,)), REQUEST).command
    slow = replace(refused, status="timeout")
    assert conclude(case(slow, findings=(finding,)), REQUEST).command


def test_a_cure_that_waits_to_be_asked_for_is_in_the_command():
    fix = Fix("Make several calls at once.", lever="parallel-map", equivalence="semantic")
    finding = Finding("serial-stateful-map", "A map is serial.", cost_ms=8.0, cost_share=0.8, fixes=(fix,))
    waits = LeverSkipped("parallel-map", note="semantic: it changes the training itself; --allow semantic to try it")
    told = outcome(case(CLOSED, findings=(finding,), evidence=(waits,)))[1]
    assert told.endswith("flatout tune --resume --budget 15m --allow semantic train.py --epochs 3")
    assert outcome(case(CLOSED, findings=(replace(finding, cost_share=0.05),), evidence=(waits,)))[0] == "done"
    late = LeverSkipped("xla", note="no time left for it: a larger --budget tries it")
    assert (
        "--allow" not in outcome(case(CLOSED, findings=(finding,), evidence=(waits, late)))[1].rpartition("Decide")[2]
    )


def test_what_could_not_be_tried_says_why():
    assert outcome(case(), "The program could not be held for trials: it failed.")[1].startswith(
        "The program could not"
    )
    assert "No step" in outcome(Case("tune"))[1]


def test_a_program_that_fails_after_one_step_says_how():
    """A notebook calls its model once to look at it, and fails where it loads its data."""
    failed = replace(case(), program=Program(("train.py",), error="ValueError: no data"))
    assert failed.steps is not None
    failed = replace(failed, steps=replace(failed.steps, count=1))
    assert outcome(failed)[1] == "The program failed at its first steps: ValueError: no data"
    assert outcome(replace(failed, program=Program(("train.py",))))[1].startswith("Only one step was seen")


def test_the_command_repeats_what_was_asked_for():
    request = TuneRequest("package.train", ("a b",), module=True, levers=("xla",), allow=("semantic",), budget=1200)
    assert command(request) == "flatout tune --resume --budget 40m --lever xla --allow semantic -m package.train 'a b'"


def test_a_program_that_was_stopped_before_its_first_step_is_looked_at_again():
    early = Case("tune", program=Program(("train.py",), seconds=72.4, error=TOO_SHORT))
    word, told = outcome(early)
    assert word == "undecided"
    assert "was stopped when its time was up after 72 s, before its first step" in told
    assert "Decide it: flatout tune --resume" in told
    failed = outcome(Case("tune", program=Program(error="ValueError: no data")))[1]
    assert failed == "The program failed before its first step: ValueError: no data"


def test_what_is_open_is_named_once():
    opened = Trial(("direct-predict",), "noise", rounds=1)
    word, told = outcome(case(opened, replace(opened, stage="combination")))
    assert word == "undecided"
    assert told.count("direct-predict") == 1


@pytest.mark.parametrize("stopped", [INTERRUPTED, f"train.py was changed {WHILE_TUNED}"])
def test_a_tune_that_was_stopped_decides_nothing(stopped):
    found = case(Trial(("xla",), "noise", Interval(1.0, 0.99, 1.01), "exact", stage="single"))
    made = concluded(found, REQUEST, stopped=stopped)
    assert made.conclusion is not None
    assert (made.conclusion.outcome, made.conclusion.reason) == ("undecided", f"Undecided: {stopped}.")
    assert "--resume" in made.conclusion.command
    assert tune_screen.headline(made).startswith(f"Not decided yet: {stopped}. 1 change was tried")
