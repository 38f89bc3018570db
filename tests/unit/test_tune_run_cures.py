"""Cures of the run in a tune: what the tree says they could save, whole runs in pairs, the claim. Runs are made up."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flatout.measure.parity import Parity
from flatout.measure.parity.extent import Extent
from flatout.model.case import Case, Distribution, Finding, Fix, Interval, RunPart, RunTree, Steps, Trial, WholeRun
from flatout.model.evidence.steps import StepStack
from flatout.report.progress import Progress
from flatout.report.terminal import tune_screen
from flatout.trial.child_process import Launch
from flatout.trial.patch import Change, Patch
from flatout.trial.whole_run import Run
from flatout.tune import claim as claims
from flatout.tune import plan, run_cures, tuner
from flatout.tune.claim import Claim
from flatout.tune.clock import Clock
from flatout.tune.conclusions import claim_of
from flatout.tune.identity import identity_of
from flatout.tune.journal import Journal
from flatout.tune.plan import Plan
from flatout.tune.request import TuneRequest
from flatout.tune.run_cures import RunCures
from flatout.tune.trials import Trials
from flatout.tune.tuner import Tuner
from flatout.tune.verdict import won_text

LEVER = "background-checkpoint"
ORIGINAL = Launch(("python", "train.py"))
SAME = Parity("exact", 0.0, "losses of 320 steps are the same", Extent(losses=320, steps=320, epochs=2))

CONFIRMED = Trial(
    ("prefetch",), "won", Interval(2.0, 1.9, 2.1), equivalence="exact", parity="exact", stage="combination"
)


class Stage:
    """A program of 20 s, `saving` of them in checkpoints; `cured`: how it runs with the cure."""

    def __init__(
        self, directory: Path, monkeypatch: pytest.MonkeyPatch, saving: float, cured: Run, kind: Any = "checkpoint"
    ) -> None:
        progress = Progress(600.0, quiet=True)
        self.trials = Trials(Journal(directory), progress, directory, Clock(600.0))
        self.cured, self.numbers, self.ran = cured, SAME, []
        tree = RunTree(20.0, (RunPart(kind, "what is cured", saving), RunPart("steps", "fit", 20 - saving)))
        finding = Finding("checkpoint-bound", "Saving took long.", cost_share=saving / 20, of="run")
        self.context: Any = SimpleNamespace(
            case=Case("tune"), launch=ORIGINAL, clock=Clock(600.0), trials=self.trials, notes=[], progress=progress,
            watchdog=None, fork_servers=None, seconds_of_program=20.0, request=TuneRequest("train.py"),
            new_directory=lambda name: directory / name, contestant=self._contestant, patched=self._patched,
        )  # fmt: skip
        monkeypatch.setattr(plan, "of_run", lambda *args: Plan((LEVER,), ()))
        monkeypatch.setattr(run_cures, "_read", lambda *args: Case("run", run=tree, findings=(finding,)))
        monkeypatch.setattr(claims.whole_run, "run", self._run)
        self.written, self.patch_run = True, cured
        monkeypatch.setattr(claims.patch, "make", self._made)
        monkeypatch.setattr(claims.parity, "compare_whole", lambda *args: self.numbers)

    def _contestant(self, levers: tuple[str, ...]) -> Any:
        return SimpleNamespace(launch=replace(ORIGINAL, levers=levers))

    def _made(self, case: Case, levers: tuple[str, ...]) -> Patch:
        if not self.written and LEVER in levers:
            return Patch((), "/", (), levers)
        return Patch((Change("/a.py", b"a", b"b"),), "/", levers)

    def _patched(self, made: Patch, levers: tuple[str, ...]) -> Any:
        return SimpleNamespace(launch=replace(ORIGINAL, sources=(("train.py", "+".join(levers)),)))

    def _run(self, launch: Launch, *args: Any, watched: bool = False) -> Run:
        alone = "+".join(launch.levers)
        what = (
            "+".join(filter(None, ["watched", alone]))
            if watched
            else dict(launch.sources).get("train.py", alone or "original")
        )
        self.ran.append(what)
        if LEVER not in what:
            return Run(20.0, 0, 100)
        return self.patch_run if launch.sources else self.cured


def test_a_cure_of_the_run_is_claimed_by_its_whole_runs(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(12.0, 0, 100))
    claim = RunCures(stage.context).run(None)
    assert claim is not None
    assert claim.patch
    assert stage.ran == ["watched", *[LEVER, "original"] * 3]
    assert (claim.trial.stage, claim.trial.status, claim.trial.parity) == ("run", "won", "exact")
    assert claim.trial.speedup is not None
    assert claim.trial.speedup.ratio == pytest.approx(20 / 12)
    case = replace(stage.context.case, trials=tuple(stage.trials.found), tuned=(LEVER,), whole_run=claim.whole_run)
    assert claim_of(case) == claim.trial
    text = won_text(claim.trial, claim.trial.speedup, claim.whole_run)
    assert text.startswith("The run is 1.67 times as fast [1.49")
    assert " step" not in text.partition("Compared")[0]
    assert case.run is not None
    assert case.findings[-1].cause == "checkpoint-bound"
    shown = tune_screen.headline(replace(case, verdict=text))
    assert shown.startswith("One change makes this run 1.67 times as fast (1.49")


def test_what_the_next_start_reads_is_measured_after_a_first_one(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "LEVER", "compile-cache")
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(12.0, 0, 100), kind="tracing")
    claim = RunCures(stage.context).run(None)
    assert claim is not None
    assert stage.ran == ["watched", "compile-cache", *["compile-cache", "original"] * 3]
    assert claim.whole_run.next_start
    assert claim.whole_run.tenfold is None
    assert claim.trial.speedup is not None
    text = won_text(claim.trial, claim.trial.speedup, claim.whole_run)
    assert text.startswith("From its second start on, the run is 1.67 times as fast [1.49")
    case = replace(stage.context.case, trials=tuple(stage.trials.found), tuned=(LEVER,), whole_run=claim.whole_run)
    assert tune_screen.headline(replace(case, verdict=text)).startswith(
        "From its second start on, one change makes this run 1.67 times as fast"
    )
    assert "after a first start that is not counted" in tune_screen.whole_run(claim.whole_run)


def test_a_first_start_that_does_not_end_is_no_claim(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "LEVER", "compile-cache")
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(40.0, None, 10), kind="tracing")
    assert RunCures(stage.context).run(None) is None
    assert stage.ran == ["watched", "compile-cache"]
    assert [trial.status for trial in stage.trials.found] == ["timeout"]


def test_what_leaves_out_results_is_tried_only_where_it_is_named():
    for name in ("validation-freq", "fewer-summaries"):
        told = dict(plan.of_run(Case("tune"), allow=("semantic",)).skipped)
        assert told[name] == f"it leaves out results; only on request: --lever {name}"
    assert plan.of_run(Case("tune"), ["validation-freq=3"]).skipped == (("validation-freq", "no model is fitted"),)


def test_one_pair_of_whole_runs_is_no_claim(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(12.0, 0, 100))
    stage.context.clock = Clock(62.0)
    assert RunCures(stage.context).run(None) is None
    (trial,) = stage.trials.found
    assert trial.undecided
    assert trial.note == "no time for more than one pair of whole runs (20.0 s and 12.0 s), which shows nothing"


@pytest.mark.parametrize(("cured", "pairs"), [(Run(19.5, 0, 100), 3), (Run(25.0, 0, 100), 2)], ids=["even", "slower"])
def test_what_is_within_the_noise_of_whole_runs_is_not_claimed(tmp_path, monkeypatch, cured, pairs):
    stage = Stage(tmp_path, monkeypatch, 9.0, cured)
    monkeypatch.setattr(claims.parity, "compare_whole", lambda *args: pytest.fail("nothing is claimed"))
    assert RunCures(stage.context).run(None) is None
    assert [(trial.status, trial.note) for trial in stage.trials.found] == [("noise", f"{pairs} pairs of whole runs")]
    assert stage.ran == ["watched", *[LEVER, "original"] * pairs]


@pytest.mark.parametrize(
    ("skipped", "winners", "left", "rounds"),
    [
        ("no time left for it", [], 60.0, [()]),
        ("it does not fit", ["xla"], 60.0, [("xla",)]),
        ("it does not fit", ["extract-step", "function", "xla"], 60.0, [("extract-step", "xla")]),
        ("it does not fit", [], 60.0, []),
        ("no time left for it", [], 2.0, []),
    ],
    ids=["waiting", "refuted", "excluded-by-the-refuted", "decided", "too-late"],
)
def test_steps_have_the_time_that_others_leave(monkeypatch, skipped, winners, left, rounds):
    trials = SimpleNamespace(skipped={"bf16": skipped}, found=[])
    made, again = Tuner.__new__(Tuner), []
    made.context = SimpleNamespace(
        trials=trials, request=TuneRequest("train.py"), launch=ORIGINAL, directory=Path("/"), clock=Clock(left),
        fork_servers=SimpleNamespace(prepare=lambda *args: None), races=[SimpleNamespace(seconds_for=lambda count: 5)],
    )  # fmt: skip
    made.claim = None

    def explored(context: Any, refuted: Any) -> Any:
        again.append(tuple(refuted))
        return SimpleNamespace(run=lambda: winners)

    monkeypatch.setattr(made, "_scouted", lambda: Case("tune", steps=SimpleNamespace(count=100)))
    no_cure = SimpleNamespace(look_ahead=lambda: None, comes_before_steps=False, run=lambda claim: claim)
    empty = SimpleNamespace(run=lambda *args: None)
    for name, stand_in in (
        ("ranked", lambda launch, case: launch), ("imports_of", lambda path: ()), ("Exploration", explored),
        ("RunCures", lambda context: no_cure), ("Confirmation", lambda *args: empty), ("Claiming", lambda *args: empty),
    ):  # fmt: skip
        monkeypatch.setattr(tuner, name, stand_in)
    made._tune()
    assert again == [(), *rounds]


def test_a_short_program_is_watched_before_its_steps_are_raced_and_time_is_kept(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(12.0, 0, 100))
    cures, clock = RunCures(stage.context), stage.context.clock
    without = clock.exploring_until
    cures.look_ahead()
    assert stage.ran == ["watched"]
    assert clock.for_run == pytest.approx(run_cures.EACH * 20.0)
    assert clock.exploring_until == pytest.approx(without - clock.for_run)
    assert cures.run(None) is not None
    assert stage.ran.count("watched") == 1
    assert clock.for_run == 0


@pytest.mark.parametrize(
    ("steps", "share", "first"),
    [(1.0, 0.9, True), (11.0, None, True), (11.0, 0.7, True), (11.0, 0.9, False)],
    ids=["few", "many, but nothing ails them", "they could save less", "they could save more"],
)
def test_whole_runs_come_before_steps_that_could_save_less(tmp_path, monkeypatch, steps, share, first):
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(19.9, 0, 100))
    tree = RunTree(20.0, (RunPart("checkpoint", "what is cured", 9.0), RunPart("steps", "fit", steps)))
    of_steps = Finding("step-overhead", "…", cost_share=share, fixes=(Fix("…", lever="direct-fit"),))
    stage.context.case = Case("tune", run=tree, findings=(of_steps,) if share else ())
    cures = RunCures(stage.context)
    cures.look_ahead()
    assert cures.comes_before_steps == first
    assert cures.run(None) is None
    ran = len(stage.ran)
    assert cures.run(None) is None, "what was tried already"
    assert len(stage.ran) == ran


def test_cures_that_the_cause_of_a_finding_has_in_general_count_as_well(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(12.0, 0, 100))
    tree = RunTree(20.0, (RunPart("checkpoint", "what is cured", 9.0), RunPart("steps", "fit", 11.0)))
    stage.context.case = Case("tune", run=tree, findings=(Finding("step-overhead", "…", cost_share=0.9),))
    cures = RunCures(stage.context)
    cures.look_ahead()
    assert not cures.comes_before_steps


@pytest.mark.parametrize(("share", "goes_on"), [(0.5, True), (None, False)])
def test_the_steps_are_raced_after_a_cure_of_the_run_where_they_could_save_much_of_what_is_left(
    tmp_path, monkeypatch, share, goes_on
):
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(12.0, 0, 100))
    of_steps = Finding("step-overhead", "…", cost_share=share, fixes=(Fix("…", lever="direct-fit"),))
    tree = RunTree(20.0, (RunPart("checkpoint", "what is cured", 9.0), RunPart("steps", "fit", 11.0)))
    stage.context.case = Case("tune", run=tree, findings=(of_steps,) if share else ())
    cures = RunCures(stage.context)
    cures.look_ahead()
    first = cures.run(None)
    assert cures.comes_before_steps
    assert first is not None
    assert cures.leaves_steps(first) == goes_on
    assert cures.again(first, first) is first, "nothing could be claimed of the steps"
    steps = Claim(CONFIRMED, WholeRun(Interval(1.2, 1.1, 1.3), after_seconds=16.0, before_seconds=20.0), "a patch")
    both = cures.again(steps, first)
    assert set(both.trial.levers) == {"prefetch", LEVER}, "the cure is weighed once more, on top of the steps'"


def test_what_the_scouting_run_has_seen_to_its_end_is_not_watched_again(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(12.0, 0, 100))
    tree = RunTree(20.0, (RunPart("checkpoint", "what is cured", 9.0), RunPart("steps", "fit", 11.0)))
    stage.context.case = Case("tune", run=tree)
    cures = RunCures(stage.context)
    cures.look_ahead()
    assert stage.context.clock.for_run > 0
    assert cures.run(None) is not None
    assert "watched" not in stage.ran


@pytest.mark.parametrize(("seconds", "saving"), [(None, 9.0), (200.0, 9.0), (20.0, 0.5)], ids=["open", "long", "small"])
def test_no_time_is_kept_where_a_run_is_long_or_little_could_be_saved(tmp_path, monkeypatch, seconds, saving):
    stage = Stage(tmp_path, monkeypatch, saving, Run(12.0, 0, 100))
    stage.context.seconds_of_program = seconds
    RunCures(stage.context).look_ahead()
    assert stage.context.clock.for_run == 0
    assert len(stage.ran) == (seconds == 20.0)


@pytest.mark.parametrize("named", [True, False])
def test_a_program_that_was_not_seen_to_end_is_watched_where_its_first_finding_is_of_the_run(
    tmp_path, monkeypatch, named
):
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(12.0, 0, 100))
    first = Finding("checkpoint-bound", "…", cost_share=0.5, of="run", fixes=(Fix("…", lever=LEVER),) * named)
    stage.context.seconds_of_program, stage.context.case = None, Case("tune", findings=(first,))
    cures = RunCures(stage.context)
    cures.look_ahead()
    assert stage.ran == ["watched"] * named
    assert (stage.context.clock.for_run > 0) == named
    cures.run(None)
    assert stage.ran.count("watched") == 1


def test_other_numbers_are_no_claim(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(12.0, 0, 100))
    stage.numbers = Parity("failed", 0.5, "losses differ")
    assert RunCures(stage.context).run(None) is None
    assert stage.trials.found[-1].status == "failed"


@pytest.mark.parametrize(
    ("ends", "numbers", "note"),
    [
        (Run(3.0, 1, 10, last_line="OSError: read-only"), SAME, "does not end with the levers as it does without"),
        (Run(12.0, 0, 100), Parity("failed", 0.5, "losses differ"), "does not compute the same with the levers"),
    ],
    ids=["crash", "other numbers"],
)
def test_without_an_edit_a_cure_that_falls_is_kept_as_failed(tmp_path, monkeypatch, ends, numbers, note):
    stage = Stage(tmp_path, monkeypatch, 9.0, ends)
    stage.numbers, stage.written = numbers, False
    assert RunCures(stage.context).run(None) is None
    assert [(one.status, note in one.note) for one in stage.trials.found] == [("failed", True)]


def test_where_the_patch_crashes_the_cure_itself_is_tried(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(12.0, 0, 100))
    stage.patch_run = Run(3.0, 1, 10, last_line="NameError: thread")
    claim = RunCures(stage.context).run(None)
    assert claim is not None
    assert (claim.patch, claim.trial.status) == ("", "won")


def test_what_could_not_be_compared_is_no_claim(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(12.0, 0, 100))
    stage.numbers = Parity("unknown", None, "no number was seen in both")
    assert RunCures(stage.context).run(None) is None
    assert [(one.status, one.parity) for one in stage.trials.found] == [("noise", "unknown")]
    assert "no number was seen in both" in stage.trials.found[-1].note


def test_on_top_of_a_claim_the_set_is_compared_anew(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(12.0, 0, 100))
    stage.numbers = Parity("unknown", None, "no number was seen in both")
    trial = Trial(
        ("prefetch",), "won", Interval(2.0, 1.9, 2.1), parity="exact", equivalence="exact", stage="combination"
    )
    before = Claim(trial, WholeRun(), patch="a patch")
    assert RunCures(stage.context).run(before) is before
    assert [(one.status, one.parity) for one in stage.trials.found] == [("noise", "unknown")]


def test_a_cure_that_cannot_be_written_does_not_take_the_patch_away(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(12.0, 0, 100))
    stage.written = False
    trial = Trial(
        ("prefetch",), "won", Interval(2.0, 1.9, 2.1), parity="exact", equivalence="exact", stage="combination"
    )
    before = Claim(trial, WholeRun(), patch="a patch")
    assert RunCures(stage.context).run(before) is before
    assert stage.trials.skipped[LEVER].startswith("no edit of it fits beside the patch")


def test_a_cure_that_can_save_little_is_not_tried(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, 0.5, Run(12.0, 0, 100))
    assert RunCures(stage.context).run(None) is None
    assert stage.ran == ["watched"]
    assert stage.trials.skipped[LEVER] == "it could save 0.5 s of a run of 20.0 s at most"


def test_what_a_cure_could_save_may_be_lines_of_several_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "LEVER", "background-figures")
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(12.0, 0, 100), kind="callback")
    assert RunCures(stage.context).run(None) is None
    assert stage.trials.skipped[LEVER] == "it could save 0.0 s of a run of 20.0 s at most"


def test_what_is_worth_trying_is_what_is_left_with_the_claim(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, 0.9, Run(12.0, 0, 100))
    RunCures(stage.context).run(Claim(CONFIRMED, WholeRun(after_seconds=8.0), patch="a patch"))
    assert stage.ran[0] == "watched+prefetch"
    assert stage.context.case.run is None  # of another program than the case is of
    assert LEVER not in stage.trials.skipped
    stage = Stage(tmp_path, monkeypatch, 0.9, Run(12.0, 0, 100))
    RunCures(stage.context).run(None)
    assert stage.trials.skipped[LEVER] == "it could save 0.9 s of a run of 20.0 s at most"


def test_on_top_of_a_claim_it_has_to_add_something(tmp_path, monkeypatch):
    won = Trial(("cache",), "won", Interval(2.0, 1.9, 2.1), "exact", step_ms=5.0, stage="combination")
    before = Claim(won, WholeRun(Interval(1.5, 1.4, 1.6), before_seconds=30.0, after_seconds=20.0), "diff")
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(12.0, 0, 100))
    claim = RunCures(stage.context).run(before)
    assert claim is not None
    assert claim.trial.levers == ("cache", LEVER)
    assert claim.trial.stage == "run", "no race of steps had both"
    assert claim.trial.speedup == claim.whole_run.speedup
    assert stage.ran[1:7] == [f"cache+{LEVER}", "cache"] * 3
    stage = Stage(tmp_path / "again", monkeypatch, 9.0, Run(20.0, 0, 100))
    assert RunCures(stage.context).run(before) is before


def test_cures_of_the_run_are_not_raced_and_steps_not_run_whole():
    raced = plan.make(Case("tune"), [LEVER])
    assert raced.levers == ()
    assert not any(name == LEVER for name, _ in raced.skipped)
    whole = plan.of_run(Case("tune"), [LEVER])
    assert whole.levers == ()
    assert whole.skipped == ((LEVER, "no model is fitted"),)
    assert plan.of_run(Case("tune"), ["cache"]) == Plan((), ())


def test_a_program_that_was_edited_while_it_was_tuned_has_no_claim(tmp_path, monkeypatch):
    program = tmp_path / "train.py"
    program.write_text("EPOCHS = 2\n")
    made = Tuner(TuneRequest(str(program)), tmp_path, Progress(60.0, quiet=True))
    made.context.journal.keep_scouted(Case("tune"), identity_of(["python", str(program)], tmp_path))
    made.context.case = Case("tune", steps=Steps(100, "batches", Distribution(10.0, 9.0, 11.0, 10.0)))
    made.context.trials.found.append(CONFIRMED)
    made.claim = Claim(made.context.trials.found[-1], WholeRun(), patch="a patch")
    assert made._conclude().tuned == ("prefetch",)
    program.write_text("EPOCHS = 3\n")
    monkeypatch.chdir(tmp_path)
    case = made._conclude()
    made.context.close()
    assert (case.tuned, case.patch) == ((), "")
    assert case.verdict.startswith("Undecided: train.py was changed while it was tuned. Decide it: flatout tune")


def test_a_fault_of_flatout_loses_nothing_that_was_found(tmp_path, monkeypatch):
    program = tmp_path / "train.py"
    program.write_text("EPOCHS = 2\n")

    def fails() -> None:
        raise KeyError("a name")

    def tuner_with(*found: Trial) -> Tuner:
        made = Tuner(TuneRequest(str(program)), tmp_path, Progress(60.0, quiet=True))
        made.context.journal.keep_scouted(Case("tune"), identity_of(["python", str(program)], tmp_path))
        made.context.case = Case("tune", steps=Steps(100, "batches", Distribution(10.0, 9.0, 11.0, 10.0)))
        made.context.trials.found.extend(found)
        monkeypatch.setattr(made, "_tune", fails)
        return made

    with pytest.raises(KeyError):
        tuner_with().run()
    case = tuner_with(CONFIRMED).run()
    assert case.trials == (CONFIRMED,)
    assert case.verdict.startswith("Undecided: flatout itself failed (KeyError)")
    assert case.notes[-1].text.endswith("error.txt")
    assert "in fails" in (tmp_path / "error.txt").read_text()
    made = tuner_with(CONFIRMED)
    made.claim = Claim(CONFIRMED, WholeRun(), patch="a patch")
    assert made.run().tuned == ("prefetch",)


def test_a_tune_that_is_not_decided_asks_for_more_time_than_it_had(tmp_path):
    made = Tuner(TuneRequest("train", module=True), tmp_path, Progress(60.0, quiet=True))
    made.context.journal.begin(["python", "-m", "train"], str(tmp_path))
    made.context.case = Case("tune", steps=Steps(100, "batches", Distribution(10.0, 9.0, 11.0, 10.0)))
    made.context.trials.found.append(Trial(("prefetch",), "noise", rounds=2))
    assert "--budget 16m" in made._conclude().verdict
    assert made.context.clock.extend(45.0), "starts are slow: 21 minutes"
    assert "--budget 42m" in made._conclude().verdict
    made.context.close()


FEWER_UPDATES = Parity("failed", None, "the program makes 50 steps where it made 100")


@pytest.mark.parametrize(
    ("lever", "cured", "note"),
    [
        ("batch-size=2", Run(12.0, 0, 50), ""),
        ("accumulate=4", Run(12.0, 0, 400), ""),
        ("accumulate=4", Run(5.0, 0, 100), "not comparable: its runs see 0.25 times as many samples"),
        ("batch-size=2", Run(12.0, 0, 45), "not comparable: its runs see 0.90 times as many samples"),
        ("batch-size=2", Run(12.0, 0, 50, rank=80), "not comparable: its samples cannot be counted"),
    ],
    ids=["larger batches", "parts of batches", "as many parts as batches", "rests left out", "other steps"],
)
def test_what_changes_a_step_is_claimed_by_whole_runs_that_see_as_many_samples(
    tmp_path, monkeypatch, lever, cured, note
):
    monkeypatch.setattr(sys.modules[__name__], "LEVER", lever)
    stage = Stage(tmp_path, monkeypatch, 9.0, cured, kind="steps")
    stage.numbers = FEWER_UPDATES
    claim = RunCures(stage.context).run(None)
    assert (claim is None) == bool(note)
    (trial,) = stage.trials.found
    if note:
        assert (trial.status, trial.speedup, trial.note) == ("failed", None, note)
    else:
        assert (trial.status, trial.stage, trial.equivalence) == ("won", "run", "semantic")
        assert trial.speedup is not None
        assert trial.speedup.ratio == pytest.approx(20 / 12)


@pytest.mark.parametrize("name", ["batch-size", "accumulate"])
def test_no_race_of_steps_tries_what_changes_a_step(name):
    steps = Steps(100, "batches of Keras fit", Distribution(10.0, 9.0, 11.0, 10.0))
    seen = Case("tune", steps=steps, evidence=(StepStack("fit", run_eagerly=False),))
    for request in ({"named": [f"{name}=4"]}, {"allow": ["semantic"]}):
        made = plan.make(seen, **request)
        assert not any(text.startswith(name) for text in made.levers)
        assert any(text.startswith(name) for text in plan.of_run(seen, **request).levers)
    made = Tuner.__new__(Tuner)
    made.context = SimpleNamespace(request=TuneRequest("train.py", levers=(f"{name}=4",)))
    assert (made._races(), made._asks_for_run()) == (False, True)


def test_the_ratio_of_a_step_does_not_hold_for_another_step(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "LEVER", "batch-size=2")
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(12.0, 0, 50), kind="steps")
    stage.numbers = FEWER_UPDATES
    claim = RunCures(stage.context).run(Claim(CONFIRMED, WholeRun()))
    assert claim is not None
    assert (claim.trial.levers, claim.trial.stage) == (("prefetch", "batch-size=2"), "run")
    assert claim.trial.speedup == claim.whole_run.speedup


def test_a_second_cure_of_the_run_is_claimed_with_the_ratio_of_both(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(10.0, 0, 100))
    first = Trial(("validation-batch=4",), "won", Interval(1.1, 1.05, 1.15), "exact", equivalence="exact", stage="run")
    claim = RunCures(stage.context).run(Claim(first, WholeRun(Interval(1.1, 1.05, 1.15)), "diff"))
    assert claim is not None
    assert claim.trial.levers == ("validation-batch=4", LEVER)
    assert claim.trial.speedup == claim.whole_run.speedup
    assert claim.trial.speedup is not None
    assert claim.trial.speedup.ratio == pytest.approx(2.0)


def test_a_patch_that_was_withheld_does_not_come_back_with_a_cure_of_the_run(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(12.0, 0, 100))
    claim = RunCures(stage.context).run(Claim(CONFIRMED, WholeRun(), patch=""))
    assert claim is not None
    assert (claim.trial.levers, claim.patch) == (("prefetch", LEVER), "")


def test_cures_that_exclude_each_other_are_not_combined(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "LEVER", "accumulate=2")
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(12.0, 0, 200), kind="steps")
    first = replace(CONFIRMED, levers=("batch-size=2",), stage="run")
    before = Claim(first, WholeRun())
    assert RunCures(stage.context).run(before) is before
    assert stage.trials.skipped["accumulate"] == "it cannot be combined with batch-size=2"


def test_a_set_that_was_not_measured_does_not_take_the_place_of_a_claim(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(12.0, 0, 100))
    cures, before = RunCures(stage.context), Claim(CONFIRMED, WholeRun(Interval(1.5, 1.4, 1.6), pairs=3))
    monkeypatch.setattr(cures, "_adds", lambda *given: True)
    guess = WholeRun(Interval(1.4, 1.2, 1.6), estimated=True, complete=True, after_seconds=12.0)
    monkeypatch.setattr(
        cures, "_claiming", lambda: SimpleNamespace(to_the_end=lambda trial, *more, **how: Claim(trial, guess, "diff"))
    )
    assert cures.run(before) is before
    assert stage.trials.found[-1].note == "no time for a pair of whole runs"


def test_a_lever_that_gives_up_on_the_way_is_no_claim(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, 9.0, Run(12.0, 0, 100, gave_up="cache: a second pass differs"))
    stage.written = False
    assert RunCures(stage.context).run(None) is None
    (trial,) = stage.trials.found
    assert trial.note == "the whole program does not keep the levers to its end: cache: a second pass differs"
