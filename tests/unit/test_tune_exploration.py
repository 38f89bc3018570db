"""What is tried when: levers that findings name first, then bounds, nothing after the time is up. No process runs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flatout.measure.race import Exit, Verdict
from flatout.model.case import Case, Distribution, Finding, Fix, Interval, RunPart, RunTree, Steps, Trial
from flatout.report.progress import Progress
from flatout.tune import exploration as explorations
from flatout.tune.clock import Clock
from flatout.tune.exploration import Exploration
from flatout.tune.journal import Journal
from flatout.tune.plan import Plan
from flatout.tune.request import TuneRequest
from flatout.tune.trials import Trials

FIRST = Finding("of-a-plugin", "…", cost_share=0.5, fixes=(Fix("…", lever="prefetch"),))
STEPS = Steps(100, "batches of Keras fit", Distribution(10.0, 9.0, 11.0, 10.0))
FASTER, SAME = Interval(2.0, 1.9, 2.1), Interval(1.0, 0.95, 1.05)
STEP = SimpleNamespace(least_step="fit", not_steps=())


@dataclass
class FakeRace:
    """Notes which levers it was to run; each contestant gets the verdict that is made up for its last lever."""

    gains: dict[str, Interval]
    start_seconds: float = 1.0
    ran: list[tuple[str, ...]] = field(default_factory=list)
    baselines: list[Any] = field(default_factory=lambda: [SimpleNamespace(active=True, done=9, launch=STEP)])

    def start(self, contestants: list[Any]) -> None: ...

    def seconds_for(self, contestants: int) -> float:
        return contestants * self.start_seconds

    def seconds_to_start(self, contestants: int) -> float:
        return contestants * self.start_seconds

    def run(self, contestants: list[Any], rules: Any, limit: Any) -> None:
        self.ran.append(tuple(one.levers[-1] for one in contestants))

    def close(self) -> None: ...


class FakeTrials(Trials):
    def keep(self, race: Any, one: Any, stage: Any, *, check: bool = True) -> Trial:
        speedup = race.gains.get(one.levers, SAME)
        trial = Trial(one.levers, "won" if speedup.low > 1.02 else "noise", speedup, "exact", stage=stage, rounds=9)
        self.found.append(trial)
        return trial

    def keep_all(self, race: Any, contestants: Any, stage: Any) -> None:
        for one in contestants:
            speedup = race.gains.get(one.levers[-1], SAME)
            status = "won" if speedup.low > 1.02 else "noise"
            trial = Trial(one.levers, status, speedup, "exact", stage=stage, rounds=9)
            self.found.append(trial)
            self.journal.keep(trial)


def explored(
    tmp_path: Path, monkeypatch: Any, gains: dict[str, Interval], **more: Any
) -> tuple[list[str], FakeRace, Any]:
    race = FakeRace(gains, more.pop("start_seconds", 1.0))
    journal, progress = Journal(tmp_path), Progress(60.0, quiet=True)
    clock, seconds = Clock(more.pop("budget", 480.0)), more.pop("seconds", 10.0)
    findings = more.pop("findings", (FIRST,))
    clock.for_run, run = more.pop("for_run", 0.0), more.pop("run", None)
    refuted, spread = more.pop("refuted", ()), more.pop("spread", None)
    planned = more.pop("planned", Plan(("prefetch", "xla", "cache", "onednn"), (("threads", "one core"),)))
    monkeypatch.setattr(explorations.plan, "make", lambda *args: planned)
    context = SimpleNamespace(
        request=TuneRequest("train.py", **more),
        case=Case("tune", steps=STEPS, findings=findings, run=run),
        launch=None,
        clock=clock,
        journal=journal,
        trials=FakeTrials(journal, progress, tmp_path, Clock(60.0)),
        progress=progress,
        varies=False,
        spread=spread,
        seconds_of_program=seconds,
        learn_of=lambda contestants, made: False,
        race=lambda launch: race,
        contestant=lambda levers: SimpleNamespace(
            levers=levers, title=levers[-1], exit=Exit("decided"), verdict=Verdict("won"), unchanged=False, idle=bool
        ),
        alive_at_once=lambda race: 3,
        combinable=lambda text: True,
    )
    return Exploration(context, refuted).run(), race, context  # type: ignore[arg-type]


def test_what_a_finding_names_is_tried_first_then_bounds_then_the_others(tmp_path, monkeypatch):
    winners, race, context = explored(tmp_path, monkeypatch, {})
    assert not winners
    assert race.ran == [("prefetch",), ("free-input", "free-compute"), ("xla", "cache", "onednn")]
    assert context.trials.skipped == {"threads": "one core"}


def test_bounds_take_no_more_than_a_fifth_of_the_budget(tmp_path, monkeypatch):
    _, race, _ = explored(tmp_path, monkeypatch, {}, start_seconds=50.0)
    assert ("free-input", "free-compute") not in race.ran
    assert race.ran[0] == ("prefetch",)


def test_the_winner_of_a_small_gain_is_combined_with_those_of_the_others(tmp_path, monkeypatch):
    small = Interval(1.1, 1.05, 1.15)
    winners, _, _ = explored(tmp_path, monkeypatch, {"prefetch": small, "cache": small, "xla": FASTER})
    assert winners == ["prefetch", "xla", "cache"]


@pytest.mark.parametrize(
    ("winner", "small", "beside"),
    [
        (5.0, Interval(1.06, 1.01, 1.1), ["cache"]),  # 6 % of the program is a quarter of what is left
        (1.3, Interval(1.06, 1.01, 1.1), []),
        (5.0, Interval(1.06, 0.97, 1.2), []),  # it may as well be slower
    ],
)
def test_what_saves_much_of_what_the_winners_leave_is_confirmed_beside_them(
    tmp_path, monkeypatch, winner, small, beside
):
    both = replace(FIRST, fixes=(Fix("…", lever="prefetch"), Fix("…", lever="cache")))
    monkeypatch.setattr(Exploration, "_worth_observing_again", lambda *args: False)
    gains = {"prefetch": Interval(winner, winner - 0.1, winner + 0.1), "cache": small, "xla": small}
    winners, _, _ = explored(tmp_path, monkeypatch, gains, findings=(both,))
    assert winners == ["prefetch", *beside]


SECOND = Finding("another", "…", cost_share=0.3, fixes=(Fix("…", lever="cache"), Fix("…", lever="xla")))
BOTH = ("prefetch", "cache")


@pytest.mark.parametrize(
    ("gains", "ran", "winners"),
    [
        ({BOTH: FASTER}, [("cache",), ("xla",)], [*BOTH]),
        ({BOTH: SAME, "cache": FASTER}, [("cache",), ("prefetch",), ("cache",), ("xla",)], ["cache"]),
    ],
    ids=["they win", "they do not"],
)
def test_where_starts_are_slow_the_first_cure_of_each_finding_is_tried_with_those_of_the_others(
    tmp_path, monkeypatch, gains, ran, winners
):
    monkeypatch.setattr(Exploration, "_worth_observing_again", lambda *args: False)
    planned = Plan(("prefetch", "cache", "xla"), ())
    found, race, context = explored(
        tmp_path, monkeypatch, gains, findings=(FIRST, SECOND), planned=planned, start_seconds=100.0
    )
    assert found == winners
    assert race.ran[: len(ran)] == ran
    assert [trial.levers for trial in context.trials.found if trial.stage == "at-once"] == [BOTH]


def test_where_there_is_time_for_each_lever_they_are_not_tried_at_once(tmp_path, monkeypatch):
    planned = Plan(("prefetch", "cache", "xla"), ())
    _, _, context = explored(tmp_path, monkeypatch, {}, findings=(FIRST, SECOND), planned=planned)
    assert not [trial for trial in context.trials.found if trial.stage == "at-once"]


def test_what_is_left_out_for_want_of_time_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(Clock, "left_to_explore", lambda self: -1.0)
    monkeypatch.setattr(Clock, "left", lambda self: -1.0)
    _, race, context = explored(tmp_path, monkeypatch, {})
    assert race.ran == []
    assert context.trials.skipped["prefetch"].startswith("no time left for it")


def test_other_levers_are_tried_on_top_of_what_has_won(tmp_path, monkeypatch):
    changed = (Case("tune", steps=STEPS), None)

    def observed(self: Exploration, won: Any) -> Any:
        self.base = tuple(won)
        return changed

    monkeypatch.setattr(Exploration, "_observed_with", observed)
    winners, _, context = explored(tmp_path, monkeypatch, {"prefetch": FASTER, "cache": FASTER})
    assert winners == ["prefetch", "cache"]
    tried = [trial.levers for trial in context.trials.found if trial.stage == "single"]
    assert tried == [("prefetch",), ("prefetch", "xla"), ("prefetch", "cache"), ("prefetch", "onednn")]


@pytest.mark.parametrize(("seconds", "tried"), [(None, False), (10.0, True)])
def test_time_for_whole_runs_is_not_spent_on_levers_that_nothing_names(tmp_path, monkeypatch, seconds, tried):
    """Each takes most of what is left for trying; how long the program takes is not known."""
    small = Interval(1.1, 1.05, 1.15)
    _, race, _ = explored(tmp_path, monkeypatch, {"prefetch": small}, start_seconds=150.0, seconds=seconds)
    assert (("xla",) in race.ran) == tried


def test_time_that_is_kept_for_cures_of_the_run_is_not_for_trying(tmp_path, monkeypatch):
    _, race, context = explored(tmp_path, monkeypatch, {}, for_run=400.0, start_seconds=100.0)
    assert race.ran == []
    assert context.trials.skipped["prefetch"].startswith("no time left for it")


def test_what_was_ahead_when_the_time_was_up_is_confirmed_where_nothing_has_won(tmp_path, monkeypatch):
    promising = {("xla",): 1.7, ("cache",): 1.2, ("prefetch", "onednn"): 3.0}
    monkeypatch.setattr(FakeTrials, "__post_init__", lambda self: setattr(self, "promising", promising))
    (tmp_path / "none").mkdir()
    (tmp_path / "some").mkdir()
    assert explored(tmp_path / "none", monkeypatch, {})[0] == ["xla"]
    assert explored(tmp_path / "some", monkeypatch, {"onednn": FASTER})[0] == ["onednn"]


def test_what_was_refuted_leaves_its_place_to_the_next_that_was_ahead(tmp_path, monkeypatch):
    promising = {("xla",): 1.7, ("cache",): 1.2}
    monkeypatch.setattr(FakeTrials, "__post_init__", lambda self: setattr(self, "promising", promising))
    assert explored(tmp_path, monkeypatch, {}, refuted=("xla",))[0] == ["cache"]


def test_what_was_refuted_is_not_tried_again_by_itself(tmp_path, monkeypatch):
    open_ended = Trial(("xla",), "noise", rounds=4, stage="single")
    monkeypatch.setattr(FakeTrials, "__post_init__", lambda self: setattr(self, "found", [open_ended]))
    planned = Plan(("prefetch",), ())
    winners, race, _ = explored(tmp_path, monkeypatch, {}, refuted=("xla",), planned=planned)
    assert not any("xla" in levers for levers in race.ran)
    assert not winners


def test_time_that_decides_what_is_ahead_is_not_spent_on_what_no_finding_names(tmp_path, monkeypatch):
    monkeypatch.setattr(FakeTrials, "__post_init__", lambda self: setattr(self, "promising", {("prefetch",): 1.7}))
    monkeypatch.setattr(FakeRace, "seconds_for", lambda self, contestants: 470.0)
    open_ended = Interval(1.7, 0.9, 3.0)
    winners, race, _ = explored(tmp_path, monkeypatch, {"prefetch": open_ended}, for_run=20.0)
    assert (winners, race.ran) == (["prefetch"], [("prefetch",)])


def test_what_is_open_is_tried_again_until_it_is_closed_the_best_first(tmp_path, monkeypatch):
    wide, wider = Interval(1.0, 0.8, 1.6), Interval(1.1, 0.7, 2.0)
    winners, race, _ = explored(tmp_path, monkeypatch, {"xla": wide, "onednn": wider})
    assert not winners
    assert race.ran[-1] == ("onednn", "xla")
    assert "prefetch" not in race.ran[-1], "its interval is closed"


def test_other_machines_race_the_levers_and_this_one_what_they_leave(tmp_path, monkeypatch):
    asked: list[Any] = []

    def race(wanted: Any) -> list[str]:
        asked.append(wanted)
        return [text for text in wanted.levers if text == "xla"]

    winners, local, _ = explored(tmp_path, monkeypatch, {"xla": FASTER}, spread=SimpleNamespace(race=race))
    assert [(one.levers, one.comparisons, one.least_step) for one in asked] == [
        (("prefetch",), 1, "fit"), (("xla", "cache", "onednn"), 3, "fit"),
    ]  # fmt: skip
    assert local.ran == [("free-input", "free-compute"), ("xla",)]
    assert winners == ["xla"]


@pytest.mark.parametrize(("start", "block", "whole", "share"), [(1.0, 0.3, 10.0, 0.22), (20.0, 4.0, 60.0, 0.6)])
def test_what_is_kept_for_confirming_follows_the_program(start, block, whole, share):
    clock = Clock(480.0)
    clock.reserve(start, block, whole)
    assert clock.reserved / clock.budget == pytest.approx(share, abs=0.05)
    assert clock.exploring_until < clock.closing < clock.end
    assert clock.left() <= clock.end - time.monotonic() + 1
    clock.reserve(start, block, None)
    assert clock.reserved >= 0.2 * clock.budget, "a program that was not seen to end may be long"


def test_what_a_finding_names_is_tried_again_before_what_none_does(tmp_path, monkeypatch):
    open_ended = Interval(1.2, 0.9, 1.6)
    _, race, _ = explored(tmp_path, monkeypatch, {"prefetch": open_ended})
    assert race.ran[:2] == [("prefetch",), ("prefetch",)]
    assert ("xla", "cache", "onednn") in race.ran


def test_slow_programs_have_their_levers_tried_a_few_at_a_time(tmp_path, monkeypatch):
    _, race, _ = explored(tmp_path, monkeypatch, {}, start_seconds=80.0)
    assert all(len(levers) == 1 for levers in race.ran)


@pytest.mark.parametrize(("start", "minutes"), [(5.0, 8), (25.0, 11.7), (200.0, 25)])
def test_a_program_that_starts_slowly_gets_more_time_by_default(start, minutes):
    clock = Clock(480.0)
    assert clock.extend(start) == (minutes > 8)
    assert clock.budget / 60 == pytest.approx(minutes, abs=0.05)


@pytest.mark.parametrize(("steps", "tried"), [(2.0, False), (8.0, True)])
def test_levers_that_nothing_names_are_left_out_once_the_steps_take_little_of_the_run(
    tmp_path, monkeypatch, steps, tried
):
    monkeypatch.setattr(Exploration, "_worth_observing_again", lambda *args: False)
    run = RunTree(12.0, (RunPart("imports", "tensorflow", 12.0 - steps), RunPart("steps", "fit", steps)))
    winners, race, context = explored(tmp_path, monkeypatch, {"prefetch": FASTER}, run=run)
    assert winners == ["prefetch"]
    assert (("xla", "cache", "onednn") in race.ran) == tried
    if not tried:
        assert context.trials.skipped["xla"] == "no finding names it, and the steps take 9% of the run by now"
