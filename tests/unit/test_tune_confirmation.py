"""Which levers are confirmed together, and which are dropped as passengers. The blocks are made up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from flatout.measure.parity import Parity
from flatout.measure.race import Exit, Rules, Verdict
from flatout.model.case import Case, Finding, Fix, Interval, Trial, Where
from flatout.report.progress import Progress
from flatout.trial.child_process import Launch
from flatout.tune import confirmation as confirmations
from flatout.tune import parity
from flatout.tune.by_hand import by_hand
from flatout.tune.clock import Clock
from flatout.tune.conclusions import is_open
from flatout.tune.confirmation import Confirmation, sets_to_race, without_one
from flatout.tune.contestant import Block, Contestant
from flatout.tune.context import Context
from flatout.tune.journal import Journal
from flatout.tune.race import Race, calls_of, warm_steps_of
from flatout.tune.starter import Starter
from flatout.tune.trials import Trials

A, B, C = "xla", "cache", "prefetch"


@pytest.fixture
def confirmation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Confirmation:
    monkeypatch.setattr(confirmations, "writable", lambda case, levers: set(levers) - {C})
    trials = Trials(Journal(tmp_path), Progress(60.0, quiet=True), tmp_path, Clock(60.0))
    return Confirmation(SimpleNamespace(trials=trials, case=Case("tune"), seconds_of_program=None))  # type: ignore[arg-type]


def raced(confirmation: Confirmation, step: float, *levers: str) -> Trial:
    """As if these levers had been confirmed together, against steps of 10 ms."""
    blocks = [Block([step * (1 + 0.001 * n)] * 8, 8, 0.1) for n in range(9)]
    confirmation.raced[levers] = Contestant(Launch(()), "one", levers, blocks=list(blocks), exit=Exit("decided"))
    ratio = 0.010 / step
    trial = Trial(levers, "won", Interval(ratio, 0.95 * ratio, 1.05 * ratio), "exact", stage="combination", rounds=9)
    confirmation.context.trials.found.append(trial)
    return trial


def test_all_together_each_left_out_and_what_a_patch_can_hold():
    assert sets_to_race((A,), [A]) == [(A,)]
    assert sets_to_race((A, B), [A, B]) == [(A, B), (A,), (B,)]
    assert sets_to_race((A, B, C), [A, B]) == [(A, B, C), (A,), (A, B), (A, C), (B, C), (B,)]
    assert without_one((A, B, C)) == [(A, B), (A, C), (B, C)]
    assert without_one((A,)) == []


def test_a_passenger_is_dropped_however_lucky_it_was(confirmation):
    raced(confirmation, 0.00199, A, B)
    raced(confirmation, 0.00200, A)
    raced(confirmation, 0.00900, B)
    best = confirmation._best()
    assert best is not None
    assert best.levers == (A,)
    noted = next(one for one in confirmation.context.trials.found if one.levers == (A, B))
    assert noted.note == "no faster than without cache"


def test_a_lever_that_pays_beside_the_others_stays(confirmation):
    raced(confirmation, 0.0010, A, B)
    raced(confirmation, 0.0020, A)
    raced(confirmation, 0.0050, B)
    best = confirmation._best()
    assert best is not None
    assert best.levers == (A, B)


def test_passengers_are_dropped_one_after_the_other(confirmation):
    raced(confirmation, 0.00200, A, B, C)
    raced(confirmation, 0.00200, A, B)
    raced(confirmation, 0.00500, B, C)
    raced(confirmation, 0.00201, A, C)
    raced(confirmation, 0.00201, A)
    best = confirmation._best()
    assert best is not None
    assert best.levers == (A,)


class Renewed(Race):
    """Of which the blocks of each group of fresh processes are made up."""

    def __init__(self, directory: Path, groups: list[dict[tuple[str, ...], float]]) -> None:
        blocks = [Block([0.010] * 8, 8, 0.1) for _ in range(9)]
        bases = [Contestant(Launch(()), name, blocks=list(blocks)) for name in "ab"]
        super().__init__(bases, Starter(directory, None))  # type: ignore[arg-type]
        self.steps_of_group, self.round = groups, 9

    def seconds_to_confirm(self, contestants: int, groups: int) -> float:
        return 0.0 if self.steps_of_group else 1e9

    def confirm(self, contestants, groups, rounds):
        self.contestants += [one for one in contestants if one not in self.contestants]
        for steps in self.steps_of_group:
            self.begin_group()
            for one in (*self.baselines, *contestants):
                one.blocks += [None] * (self.round - len(one.blocks))  # of groups without it
                one.blocks += [Block([steps.get(one.levers, 0.010)] * 8, 8, 0.1)] * rounds
            self.round += rounds


@pytest.mark.parametrize(
    ("groups", "claimed"),
    [
        ([(0.00185, 0.00200), (0.00185, 0.00199)], (A, B)),
        ([(0.00185, 0.00200), (0.00200, 0.00199)], (A,)),
        ([], (A,)),
    ],
)
def test_a_lever_that_adds_little_has_to_in_other_processes_as_well(
    confirmation, tmp_path, monkeypatch, groups, claimed
):
    raced(confirmation, 0.00185, A, B)
    raced(confirmation, 0.00200, A)
    raced(confirmation, 0.00900, B)
    monkeypatch.setattr(confirmation, "_with_patch", lambda levers: [])
    confirmation.context.races = []
    confirmation.context.clock = Clock(60.0)
    confirmation.context.progress = Progress(60.0, quiet=True)
    race = Renewed(tmp_path, [{(A, B): both, (A,): one} for both, one in groups])
    for one in confirmation.raced.values():
        race.contestants.append(one)
    ordered = confirmation._in_fresh_processes(race, [(A, B), (A,), (B,)])
    assert ordered[0] == claimed
    assert ((A, B) in ordered) == (claimed == (A, B))
    both = next(one for one in confirmation.context.trials.found if one.levers == (A, B))
    assert both.note == ("" if claimed == (A, B) else "no faster than without cache")


@pytest.mark.parametrize("shown", [None, Interval(2.0, 0.9, 2.2)], ids=["too few rounds", "a wide interval"])
def test_what_its_own_rounds_have_not_shown_stays_open(confirmation, tmp_path, shown):
    rounds = 2 if shown is None else 9
    faster = replace(raced(confirmation, 0.005, A), status="noise", speedup=shown, rounds=rounds)
    confirmation.raced[A,].blocks = [Block([0.005] * 8, 8, 0.1)] * rounds
    confirmation.raced[A,].verdict = Verdict("noise", shown, rounds=rounds)
    confirmation.context.trials.found[:] = [Trial((A,), "won", Interval(2.0, 1.9, 2.1), "exact"), faster]
    confirmation.context.races = []
    race = Renewed(tmp_path, [])
    race.contestants.append(confirmation.raced[A,])
    assert race.claim(confirmation.raced[A,]).status == "won", "as far as the prior goes"
    assert confirmation._in_fresh_processes(race, []) == []
    assert confirmation.context.trials.found[-1] == faster
    assert is_open(faster)


def test_what_was_not_started_anew_has_the_interval_of_single_processes(confirmation, tmp_path, monkeypatch):
    """Though the race has several groups of rounds: it was rewound where steps differ from each other."""
    raced(confirmation, 0.005, A)
    monkeypatch.setattr(confirmation, "_with_patch", lambda levers: [])
    narrow = Interval(2.0, 1.99, 2.01)
    one = confirmation.raced[A,]
    one.verdict = Verdict("won", narrow, rounds=9)
    confirmation.context.races, confirmation.context.clock = [], Clock(60.0)
    race = Renewed(tmp_path, [])
    race.contestants.append(one)
    race.groups = [0, 4]
    assert confirmation._in_fresh_processes(race, [(A,)]) == [(A,)]
    (settled,) = confirmation.context.trials.found
    assert settled.status == "won"
    assert settled.speedup == race.claim(one).speedup != narrow


def test_a_larger_set_has_its_turn_where_the_lighter_one_does_not_hold(confirmation, tmp_path, monkeypatch):
    """What was no faster in a few rounds is no passenger for good."""
    raced(confirmation, 0.00200, A, B)
    raced(confirmation, 0.00201, A)
    raced(confirmation, 0.00900, B)
    monkeypatch.setattr(confirmation, "_with_patch", lambda levers: [])
    confirmation.context.races, confirmation.context.clock = [], Clock(60.0)
    confirmation.context.progress = Progress(60.0, quiet=True)
    race = Renewed(tmp_path, [{(A, B): 0.00200, (A,): step} for step in (0.0099, 0.0100)])
    race.contestants += confirmation.raced.values()
    for one in confirmation.raced.values():
        one.verdict = Verdict("won", Interval(5.0, 4.9, 5.1), rounds=9)
    claimed, *_ = confirmation._decided(race)
    assert claimed.levers == (A, B)
    assert confirmation._trial((A,)).status == "noise"


def test_a_lever_that_adds_much_is_not_raced_without(confirmation):
    raced(confirmation, 0.00150, A, B)
    raced(confirmation, 0.00200, A)
    assert confirmation._lighter((A, B)) is None


def test_a_set_that_a_patch_can_hold_is_claimed_before_one_that_is_a_little_faster(confirmation):
    best = raced(confirmation, 0.00200, C)
    raced(confirmation, 0.00220, A)
    assert [one.levers for one in confirmation._in_order(best)] == [(A,), (C,)]


def test_a_set_without_a_patch_is_claimed_where_it_is_faster_by_far(confirmation):
    best = raced(confirmation, 0.00100, C)
    raced(confirmation, 0.00900, A)
    assert [one.levers for one in confirmation._in_order(best)] == [(C,), (A,)]


def test_only_what_is_to_be_claimed_is_compared_until_one_keeps_the_numbers(confirmation, monkeypatch):
    asked = []

    def compare(baselines, one, starter, directory, seconds, *, over_seeds):
        asked.append(one.levers)
        agrees = one.levers == (B,)
        return Parity("exact" if agrees else "failed", 0.0, "the same" if agrees else "losses differ by 1")

    monkeypatch.setattr(parity, "compare", compare)
    for step, levers in ((0.0010, (A, B)), (0.0020, (A,)), (0.0050, (B,))):
        trial = raced(confirmation, step, *levers)
        confirmation.context.trials.replace(trial, replace(trial, parity="", equivalence="exact"))
    race = SimpleNamespace(baselines=(), starter=None)
    assert confirmation._to_be_claimed(race) == [(B,)]
    assert asked == [(A, B), (A,), (B,)]
    assert [one.status for one in confirmation.context.trials.found] == ["failed", "failed", "won"]
    asked.clear()
    assert confirmation._to_be_claimed(race) == [(B,)]
    assert not asked, "what was compared is not compared again"


def test_a_lever_that_waited_is_compared_alone_where_its_set_falls(confirmation, monkeypatch):
    """No further set with it is compared: each would take minutes."""
    asked = []

    def compare(baselines, one, starter, directory, seconds, *, over_seeds):
        asked.append(one.levers)
        wrong = B in one.levers
        return Parity("failed" if wrong else "exact", 0.0, "losses differ by 1" if wrong else "the same")

    monkeypatch.setattr(parity, "compare", compare)
    for step, levers in ((0.0010, (A, B, C)), (0.0020, (A, B)), (0.0030, (A, C)), (0.0040, (B, C)), (0.0050, (A,))):
        trial = raced(confirmation, step, *levers)
        confirmation.context.trials.replace(trial, replace(trial, parity="", equivalence="exact"))
    speedup = Interval(2.0, 1.9, 2.1)
    alone = ((A, "exact"), (B, ""), (C, ""))
    singles = [Trial((one,), "won", speedup, known, equivalence="exact", stage="single") for one, known in alone]
    confirmation.context.trials.found += singles
    confirmation.context.contestant = lambda levers: Contestant(Launch(()), "alone", levers)
    race = SimpleNamespace(baselines=(), starter=None)
    assert confirmation._to_be_claimed(race)[0] == (A, C)
    assert asked == [(A, B, C), (B,), (C,), (A, C)]
    found = {(one.stage, one.levers): one for one in confirmation.context.trials.found}
    assert {one.levers for one in found.values() if one.status == "failed"} == {(A, B, C), (A, B), (B, C), (B,)}
    assert "losses differ by 1" in found["combination", (A, B)].note
    assert found["single", (C,)].parity == "exact"


def test_what_no_edit_can_hold_is_shown_with_its_line():
    where = Where("/home/ada/train.py", 12, "main", "model.predict(state)")
    finding = Finding("predict-in-loop", "…", where, fixes=(Fix("Call the model directly.", lever="direct-predict"),))
    told = by_hand(Case("tune", findings=(finding,)), "direct-predict")
    assert told.startswith("direct-predict is not in the patch: it ")
    assert "By hand: /home/ada/train.py:12 (model.predict(state)): Call the model directly." in told
    assert "forward = tf.function(model)" in by_hand(Case("tune"), "direct-predict"), "the page says it in general"


# ── slow steps and short programs ────────────────────────────────────────────────────────────────────────────────────


def test_slow_steps_are_taken_one_at_a_time(tmp_path):
    baselines = [Contestant(Launch(()), name, warm_seconds=4.0) for name in "ab"]
    race = Race(baselines, Starter(tmp_path, None))  # type: ignore[arg-type]
    race.adjust([])
    assert {(one.steps, one.calls) for one in baselines} == {(1, 1)}
    assert [calls_of(seconds) for seconds in (4.0, 0.5, 0.01)] == [1, 2, 3]


@pytest.mark.parametrize(("steps", "warm"), [(2, 1), (7, 4), (20, 5), (60, 5), (61, 0), (None, 5)])
def test_a_short_program_is_warm_after_some_of_its_steps(steps, warm):
    assert warm_steps_of(steps) == warm


@pytest.mark.parametrize(("program", "block"), [(7, 3), (20, 3), (2, 1), (60, 6)])
def test_blocks_fit_between_the_warm_up_and_the_end_of_a_short_program(tmp_path, program, block):
    baselines = [Contestant(Launch(()), name, warm_seconds=0.001, steps=300) for name in "ab"]
    race = Race(baselines, Starter(tmp_path, None), steps_of_program=program, warm_steps=warm_steps_of(program))  # type: ignore[arg-type]
    race.adjust([])
    assert baselines[0].steps == block
    assert baselines[0].calls <= block


def test_a_lever_with_which_the_program_makes_few_steps_does_not_make_it_a_short_one(tmp_path):
    baselines = [Contestant(Launch(()), name, warm_seconds=0.001, steps=300, done=40) for name in "ab"]
    few = Contestant(Launch(()), "few", (A,), exit=Exit("ended", "too few to time it"), ended_after=3)
    race = Race(baselines, Starter(tmp_path, None))  # type: ignore[arg-type]
    race.adjust([few])
    assert (race.steps_of_program, baselines[0].steps) == (None, 300)
    context = SimpleNamespace(ended_after=None)
    assert not Context.learn_of(context, [few], made=40)  # type: ignore[arg-type]
    assert context.ended_after is None
    late = Contestant(Launch(()), "late", (A,), ended_after=45)
    assert Context.learn_of(context, [few, late], made=40), "it ends before it is warm with a lever"  # type: ignore[arg-type]
    assert context.ended_after == 45
    race.adjust([late])
    assert race.steps_of_program == 45, "it goes on, and is started again"


def test_a_confirmation_runs_over_its_time_only_where_that_is_short(tmp_path):
    baselines = [Contestant(Launch(()), name) for name in "ab"]
    race = Race(baselines, Starter(tmp_path, None))  # type: ignore[arg-type]
    race.starter.took.append(2.0)
    assert race.rounds_past_the_deadline(Rules(), 1) == Rules().fewest_rounds + 1
    for one in baselines:
        one.starts, one.blocks = 9, [Block([0.1], 1, 0.1) for _ in range(8)]  # it ends after each block
    race.starter.took[:] = [8.0]
    assert race.rounds_past_the_deadline(Rules(), 1) == 0
