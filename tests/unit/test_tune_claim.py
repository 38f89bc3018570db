"""From confirmed levers to a claim: the patch, the whole program, what stands in for what falls. Runs are made up."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flatout.measure.parity import Parity
from flatout.measure.parity.extent import Extent
from flatout.model.case import Case, Interval, Trial
from flatout.report.progress import Progress
from flatout.trial.child_process import Launch
from flatout.trial.patch import Change, Patch
from flatout.trial.whole_run import Run
from flatout.tune import claim as claims
from flatout.tune import variants
from flatout.tune.claim import Claim, Claiming
from flatout.tune.clock import Clock
from flatout.tune.conclusions import claim_of
from flatout.tune.confirmation import Confirmed
from flatout.tune.journal import Journal
from flatout.tune.trials import Trials
from flatout.tune.verdict import won_text

ORIGINAL = Launch(("python", "train.py"))
WELL, FALLEN = Run(10.0, 0, 100), Run(9.0, 1, 100, last_line="IndexError: pop from empty list")

AGREED = Parity("exact", 0.0, "losses of 320 steps over 2 epochs are the same", Extent(losses=320, steps=320, epochs=2))


def confirmed(*levers: str, ratio: float = 2.0) -> Trial:
    interval = Interval(ratio, 0.95 * ratio, 1.05 * ratio)
    return Trial(levers, "won", interval, "exact", step_ms=5.0, stage="combination", rounds=9)


class Stage:
    """A tune up to its confirmation. `runs`: how the whole program ends, by what was changed in it."""

    def __init__(
        self, directory: Path, monkeypatch: pytest.MonkeyPatch, runs: dict[str, Run], unwritten: str = ""
    ) -> None:
        journal, progress = Journal(directory), Progress(60.0, quiet=True)
        self.trials = Trials(journal, progress, directory, Clock(60.0))
        self.runs, self.unwritten, self.numbers = runs, unwritten, AGREED
        self.patched: dict[str, Any] = {"speedup": Interval(9.0, 1.5, 10.0)}
        """What the trial of the patch shows."""
        self.ran: list[str] = []
        self.context: Any = SimpleNamespace(
            case=Case("tune"), launch=ORIGINAL, clock=Clock(1000.0), trials=self.trials, notes=[], progress=progress,
            watchdog=None, varies=False, seconds_of_program=None,
            new_directory=lambda name: directory / name, patched=self._patched,
            contestant=lambda levers: SimpleNamespace(launch=replace(ORIGINAL, levers=levers)),
        )  # fmt: skip
        self.race: Any = SimpleNamespace(starter=None, close=lambda: None)
        monkeypatch.setattr(claims.patch, "make", self._made)
        monkeypatch.setattr(claims.whole_run, "run", self._run)
        monkeypatch.setattr(claims.parity, "compare_whole", lambda *args: self.numbers)
        monkeypatch.setattr(Trials, "keep", self._kept)
        monkeypatch.setattr(Trials, "check", self._checked)
        self.first_steps: dict[str, Any] = {"parity": "exact"}
        """What comparing them shows of the patch."""

    def claim(self, *sets: Trial) -> Claim | None:
        self.trials.found += sets
        return Claiming(self.context, Confirmed(self.race, sets, {})).run()

    def _kept(self, race: object, one: Any, stage: str, *, check: bool) -> Trial:
        assert not check  # the whole training is compared after it
        trial = replace(confirmed(*one.levers), **{"stage": "patch", "parity": "", **self.patched})
        self.trials.found.append(trial)
        return trial

    def _checked(self, race: object, one: Any, trial: Trial) -> Trial:
        found = replace(trial, **self.first_steps)
        self.trials.replace(trial, found)
        return found

    def _made(self, case: Case, levers: tuple[str, ...]) -> Patch:
        written = tuple(text for text in levers if text != self.unwritten)
        changes = (Change("/train.py", b"a\n", b"b\n"),) if written else ()
        return Patch(changes, "/", written, tuple(text for text in levers if text == self.unwritten))

    def _patched(self, made: Patch, levers: tuple[str, ...]) -> Any:
        return SimpleNamespace(launch=replace(ORIGINAL, sources=(("train.py", "new"),)), levers=levers, verdict="won")

    def _run(self, launch: Launch, *args: Any) -> Run:
        what = "patched" if launch.sources else "+".join(launch.levers) or "original"
        self.ran.append(what)
        return self.runs.get(what, WELL)


def test_a_patch_that_comes_to_the_end_is_the_claim(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, {"original": Run(20.0, 0, 100)})
    claim = stage.claim(confirmed("cache"))
    assert claim is not None
    assert stage.ran == ["patched", "original"] * 3
    assert claim.patch
    assert claim.whole_run.speedup is not None
    assert claim.whole_run.speedup.ratio == pytest.approx(2.0)
    assert (claim.whole_run.pairs, claim.whole_run.parity, claim.by_hand) == (3, "exact", ())


def test_a_patch_that_breaks_the_program_is_withheld_and_the_levers_are_claimed(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, {"patched": FALLEN})
    claim = stage.claim(confirmed("cache"))
    assert claim is not None
    assert claim.patch == ""
    assert not claim.whole_run.patched
    assert any("IndexError: pop from empty list" in note.text for note in stage.context.notes)
    assert [(one.stage, one.status) for one in stage.trials.found] == [("combination", "won"), ("patch", "failed")]


def test_a_patch_that_holds_a_part_is_claimed_with_its_own_speedup(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, {})
    stage.patched = {"speedup": Interval(5.0, 4.0, 6.0), "parity": "exact"}
    best = confirmed("direct-predict", ratio=44.0)
    claim = stage.claim(best)
    assert claim is not None
    assert claim.patch
    assert claim.trial.speedup == Interval(5.0, 4.0, 6.0)
    assert "5.00 × of 44.00 ×" in stage.context.notes[0].text
    case = Case("tune", trials=(best, claim.trial), tuned=("direct-predict",), patch=claim.patch)
    assert claim_of(case) is claim.trial
    assert claim_of(replace(case, patch="")) is best
    assert won_text(claim.trial, claim.trial.speedup, None).startswith(
        "Steps are 5.00 times as fast [4.00, 6.00] (what the run gains is not known: no whole run was measured) "
        "with the patch for direct-predict; numbers: exact"
    )


def test_a_patch_is_claimed_with_its_own_speedup_unless_each_is_in_the_interval_of_the_other(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, {})
    stage.patched = {"speedup": Interval(1.5, 1.1, 2.6), "parity": "exact"}
    claim = stage.claim(confirmed("cache"))
    assert claim is not None
    assert claim.trial.speedup == Interval(1.5, 1.1, 2.6)
    stage = Stage(tmp_path, monkeypatch, {})
    stage.patched = {"speedup": Interval(1.95, 1.1, 2.6), "parity": "exact"}
    claim = stage.claim(confirmed("cache"))
    assert claim is not None
    assert claim.trial.speedup == confirmed("cache").speedup


def test_what_is_slower_however_long_it_runs_is_not_claimed(tmp_path, monkeypatch):
    slow, quick = Run(20.0, 0, 100, looping=16.0), Run(10.0, 0, 100, looping=8.0)
    stage = Stage(tmp_path, monkeypatch, {"original": quick, "patched": slow, "cache": slow})
    assert stage.claim(confirmed("cache")) is None
    assert {one.status for one in stage.trials.found} == {"lost"}
    assert "the whole program is slower with the levers: 10.0 s → 20.0 s" in stage.trials.found[0].note
    starts = replace(slow, looping=4.0)
    stage = Stage(tmp_path, monkeypatch, {"original": quick, "patched": starts, "cache": starts})
    assert stage.claim(confirmed("cache")) is not None, "a longer run gains"


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        ({"status": "noise", "speedup": Interval(1.1, 0.9, 1.3), "parity": "exact"}, "it is not faster beyond"),
        ({"status": "noise", "speedup": None}, "there was no time to try it"),
        ({"status": "failed", "note": "it ended with exit code 1"}, "it ended with exit code 1"),
    ],
)
def test_why_a_patch_is_withheld(tmp_path, monkeypatch, shown, why):
    stage = Stage(tmp_path, monkeypatch, {})
    stage.patched = shown
    claim = stage.claim(confirmed("cache"))
    assert claim is not None
    assert claim.patch == ""
    assert f"The patch for cache is withheld: {why}" in stage.context.notes[0].text


def test_the_first_steps_of_a_slower_patch_are_compared_before_it_runs_to_its_end(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, {})
    stage.patched = {"speedup": Interval(1.5, 1.4, 1.6)}
    stage.first_steps = {"status": "failed", "parity": "failed", "note": "losses differ by 0.5"}
    claim = stage.claim(confirmed("cache"))
    assert claim is not None
    assert claim.patch == ""
    assert "The patch for cache is withheld: losses differ by 0.5" in stage.context.notes[0].text
    assert "patched" not in stage.ran


def test_where_the_whole_training_cannot_be_compared_the_first_steps_of_the_patch_are(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, {})
    stage.numbers = Parity("unknown", None, "no number was seen in both")
    claim = stage.claim(confirmed("prefetch"))
    assert claim is not None
    assert claim.patch
    stage = Stage(tmp_path, monkeypatch, {})
    stage.numbers = Parity("unknown", None, "no number was seen in both")
    stage.first_steps = {"status": "failed", "parity": "failed", "note": "losses differ by 0.5"}
    claim = stage.claim(confirmed("prefetch"))
    assert claim is not None
    assert claim.patch == ""
    assert any("withheld: losses differ by 0.5" in note.text for note in stage.context.notes)


def test_where_the_levers_break_it_too_another_set_is_claimed(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, {"patched": FALLEN, "cache+xla": FALLEN})
    claim = stage.claim(confirmed("cache", "xla", ratio=3.0), confirmed("cache"))
    assert claim is not None
    assert claim.trial.levers == ("cache",)
    fallen = next(one for one in stage.trials.found if one.levers == ("cache", "xla"))
    assert fallen.status == "failed"
    assert "IndexError: pop from empty list" in fallen.note


def test_no_further_set_is_tried_when_the_time_is_up(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, {"patched": FALLEN, "cache+xla": FALLEN})
    stage.context.clock = Clock(0.0)
    assert stage.claim(confirmed("cache", "xla", ratio=3.0), confirmed("cache")) is None
    assert "cache" not in stage.ran


def test_nothing_is_claimed_where_everything_falls(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, {"patched": FALLEN, "cache": FALLEN})
    assert stage.claim(confirmed("cache")) is None
    assert [one.status for one in stage.trials.found if one.stage != "patch"] == ["failed"]


def test_results_that_differ_in_the_end_make_the_claim_fall(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, {})
    stage.numbers = Parity("failed", 0.5, "the last losses differ by 0.5")
    assert stage.claim(confirmed("cache")) is None
    assert "the last losses differ by 0.5" in stage.trials.found[0].note


@pytest.mark.parametrize(
    "numbers",
    [
        replace(AGREED, extent=Extent(losses=128, steps=128, epochs=1)),
        Parity("unknown", None, "a run with pinned random numbers could not be made"),
    ],
    ids=["one epoch", "none"],
)
def test_what_keeps_the_first_epoch_is_claimed_only_where_a_second_was_compared(tmp_path, monkeypatch, numbers):
    stage = Stage(tmp_path, monkeypatch, {})
    stage.numbers = numbers
    assert stage.claim(confirmed("cache")) is None
    assert "a second epoch" in stage.trials.found[0].note
    assert Stage(tmp_path, monkeypatch, {}).claim(confirmed("prefetch")) is not None


@pytest.mark.parametrize(
    ("numbers", "claimed"),
    [
        (replace(AGREED, extent=Extent(losses=320, steps=320, epochs=2, whole=True)), True),
        (AGREED, False),
        (Parity("statistical", 0.01, "over 6 seeds 3 values agree"), False),
        (Parity("unknown", None, "no number was seen in both"), False),
    ],
    ids=["to the end", "not to the end", "first steps of several seeds", "not compared"],
)
def test_fewer_steps_than_before_are_claimed_only_where_all_of_them_were_compared(
    tmp_path, monkeypatch, numbers, claimed
):
    stage = Stage(tmp_path, monkeypatch, {"original": Run(20.0, 0, 200), "patched": WELL, "prefetch": WELL})
    stage.numbers = numbers
    assert (stage.claim(confirmed("prefetch")) is not None) == claimed
    if not claimed:
        assert "its runs make 100 steps, where they made 200" in stage.trials.found[0].note


def test_another_precision_over_the_whole_training_is_no_claim_of_the_same_numbers(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, {})
    stage.numbers = replace(AGREED, verdict="precision", deviation=0.01)
    assert stage.claim(replace(confirmed("prefetch"), equivalence="exact")) is None


def test_a_claim_says_what_was_compared_and_what_was_not(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, {})
    claim = stage.claim(confirmed("prefetch"))
    assert claim is not None
    assert claim.whole_run.compared == "losses of 320 steps over 2 epochs are the same"
    stage = Stage(tmp_path, monkeypatch, {})
    stage.numbers = Parity("unknown", None, "no number was seen in both")
    claim = stage.claim(confirmed("prefetch"))
    assert claim is not None
    assert (claim.whole_run.parity, claim.whole_run.compared[:20]) == ("", "only the first steps")


def test_a_lever_that_no_patch_can_hold_is_shown(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, {}, unwritten="xla")
    claim = stage.claim(confirmed("xla"))
    assert claim is not None
    assert claim.patch == ""
    assert claim.by_hand[0].startswith("xla is not in the patch")


def test_a_set_with_a_patch_is_claimed_in_place_of_a_slightly_faster_one_without(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, {}, unwritten="xla")
    claim = stage.claim(confirmed("xla", ratio=2.2), confirmed("cache"))
    assert claim is not None
    assert claim.trial.levers == ("cache",)
    assert claim.patch
    slow = Stage(tmp_path, monkeypatch, {}, unwritten="xla").claim(confirmed("xla", ratio=9.0), confirmed("cache"))
    assert slow is not None
    assert slow.trial.levers == ("xla",)


def test_a_patch_that_lacks_a_lever_is_measured_and_claimed_without_it(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, {}, unwritten="xla")
    stage.patched = {"speedup": Interval(1.5, 1.3, 1.7), "parity": "exact"}
    claim = stage.claim(confirmed("xla", "cache", ratio=4.0))
    assert claim is not None
    assert claim.patch
    assert claim.trial.levers == ("cache",)
    assert claim.trial.speedup == Interval(1.5, 1.3, 1.7)
    assert claim.by_hand[0].startswith("xla is not in the patch")
    assert any("1.50 × of 4.00 ×" in note.text for note in stage.context.notes)


def test_the_patched_program_runs_with_nothing_but_the_patch(tmp_path):
    program = tmp_path / "train.py"
    program.write_text("a\n")
    launch = Launch((sys.executable, str(program)))
    made = Patch((Change(str(program), b"a\n", b"b\n"),), str(tmp_path), ("cache",), ("xla",))
    one = variants.patched(launch, made, made.written, tmp_path / "patched")
    assert one is not None
    assert one.launch.levers == ()


def test_pairs_of_a_short_program_leave_the_time_to_compare_results_once(tmp_path, monkeypatch):
    stage = Stage(tmp_path, monkeypatch, {"original": Run(14.4, 0, 100), "patched": Run(10.3, 0, 100)})
    stage.context.clock, stage.context.seconds_of_program = Clock(90.0), 14.4
    claim = stage.claim(confirmed("cache"))
    assert claim is not None
    assert claim.whole_run.pairs == 3
