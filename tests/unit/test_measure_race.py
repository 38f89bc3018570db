"""The race, with contestants whose clock is made up: no process, no TensorFlow, no time."""

from __future__ import annotations

import random
import statistics
from dataclasses import dataclass, field

import pytest

from flatout.measure.interval import rounds_needed
from flatout.measure.processors import STARVED
from flatout.measure.race import (
    WORTH,
    Block,
    Contestant,
    Exit,
    Race,
    Row,
    Rules,
    TimeLimit,
    Verdict,
    compare,
    status_of,
)
from flatout.measure.race import rules as race_rules
from flatout.model.case import Interval

FEWEST = rounds_needed(0.95)


@dataclass(eq=False)
class Simulated(Contestant):
    title: str
    seconds: float
    """Of a unit, in the middle."""
    noise: float = 0.0
    """Standard deviation of the logarithm, from block to block."""
    seed: int = 0
    taken: float = 0.0
    cpu: float = 1.0
    """Of the seconds."""
    answers: dict[int, Exit | None] = field(default_factory=dict)
    """What it says in place of a block, by the number of the call."""
    order: list[str] | None = None
    calls: int = 0
    closed: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(f"{self.title} {self.seed}")

    @property
    def name(self) -> str:
        return self.title

    def run_block(self) -> Block | Exit | None:
        self.calls += 1
        if self.order is not None:
            self.order.append(self.title)
        if self.calls in self.answers:
            return self.answers[self.calls]
        seconds = self.seconds * self.random.lognormvariate(0.0, self.noise)
        return Block([seconds] * 4, 4, 4 * seconds * self.cpu, self.taken)

    def close(self) -> None:
        self.closed += 1


def race(*contestants: Simulated, baselines: tuple[Simulated, ...] = (), rules: Rules | None = None, **limit: float):
    """A race against two equal baselines of 10 ms, unless others are given."""
    given = baselines or tuple(Simulated(f"baseline {n}", 0.010) for n in (1, 2))
    found: Race[Simulated] = Race(given)
    found.run(contestants, rules or Rules(comparisons=max(len(contestants), 1)), TimeLimit(**limit))
    return found


def verdict_of(one: Simulated) -> Verdict:
    assert one.verdict is not None
    assert one.closed
    return one.verdict


# ── what is claimed ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("interval", "status"),
    [
        (Interval(1.5, 1.2, 1.8), "won"),
        (Interval(1.5, 0.9, 1.8), "noise"),
        (Interval(1.02, 1.01, 1.03), "noise"),
        (Interval(1.5, WORTH, 1.8), "noise"),
        (Interval(0.8, 0.7, 0.9), "lost"),
        (Interval(0.97, 0.95, 0.99), "noise"),
        (None, "noise"),
    ],
)
def test_won_is_faster_for_sure_and_by_enough(interval, status):
    assert status_of(interval) == status


@pytest.mark.parametrize("noise", [0.01, 0.05, 0.3])
def test_equal_contestants_do_not_win(noise):
    """Each baseline and each contestant is a process of its own, a percent apart from the others for good."""
    won, compared = 0, 0
    for seed in range(60):
        apart = random.Random(seed)
        make = [Simulated(f"{seed} {n}", 0.01 * apart.lognormvariate(0, 0.01), noise, seed) for n in range(5)]
        race(*make[2:], baselines=tuple(make[:2]))
        won += sum(verdict_of(one).status == "won" for one in make[2:])
        compared += 3
    assert won / compared < 0.015


def test_five_percent_are_found_on_a_quiet_machine():
    statuses = []
    for seed in range(60):
        baselines = tuple(Simulated(f"baseline {n}", 0.0105, 0.01, seed) for n in (1, 2))
        one = Simulated("faster", 0.010, 0.01, seed)
        race(one, baselines=baselines)
        statuses.append(verdict_of(one).status)
        assert verdict_of(one).speedup.low <= verdict_of(one).speedup.ratio <= verdict_of(one).speedup.high
    assert statuses.count("won") >= 54
    assert "lost" not in statuses


def test_slower_is_lost():
    one = Simulated("slow", 0.012, 0.01)
    race(one)
    assert verdict_of(one).status == "lost"
    assert one.calls == FEWEST + 1


def test_the_cpu_time_is_compared_as_well():
    one = Simulated("threads", 0.005, cpu=4.0)
    race(one)
    found = verdict_of(one)
    assert found.speedup.ratio == pytest.approx(2.0)
    assert found.cpu.ratio == pytest.approx(0.5)


# ── two baselines ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_with_two_baselines_the_ratio_is_their_geometric_mean_and_the_bounds_hold_against_each():
    one = Simulated("one", 0.010)
    race(one, baselines=(Simulated("a", 0.020), Simulated("b", 0.045)))
    found = verdict_of(one).speedup
    assert found.ratio == pytest.approx(3.0)
    assert (found.low, found.high) == pytest.approx((2.0, 4.5))


def test_a_win_is_one_against_each_baseline():
    one = Simulated("one", 0.010)
    race(one, baselines=(Simulated("a", 0.0100), Simulated("b", 0.0150)))
    assert verdict_of(one).speedup.ratio > 1.2
    assert verdict_of(one).status == "noise", "one process of the same program is as fast as that"


def test_a_baseline_that_leaves_after_few_rounds_does_not_keep_the_other_from_deciding():
    one = Simulated("one", 0.005)
    gone = Simulated("a", 0.010, answers={3: Exit("failed", "it crashed")})
    race(one, baselines=(gone, Simulated("b", 0.010)))
    assert verdict_of(one).status == "won"
    assert verdict_of(one).rounds == FEWEST + 1


def test_a_wide_interval_without_promise_is_left_by_a_first_look_and_stays_open_for_a_second():
    wide, closed = Interval(1.0, 0.7, 1.8), Interval(1.0, 0.9, 1.1)
    assert race_rules.is_decided(wide, 20, Rules("decided"))
    assert not race_rules.is_decided(wide, 20, Rules("closed"))
    assert not race_rules.is_decided(wide, 20, Rules("narrow"))
    assert race_rules.is_decided(closed, 20, Rules("closed"))


def test_without_a_baseline_nothing_is_decided():
    one = Simulated("one", 0.005)
    gone = tuple(Simulated(name, 0.010, answers={2: Exit("failed", "it crashed")}) for name in "ab")
    found = race(one, baselines=gone)
    assert found.round == 2
    assert verdict_of(one).undecided


def test_the_baselines_run_alone_where_nothing_is_compared():
    assert race(rules=Rules(rounds=4)).round == 4


# ── rounds ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_runs_once_in_a_round_in_an_order_that_the_seed_decides():
    def orders(seed: int) -> list[list[str]]:
        order: list[str] = []
        everyone = [Simulated(name, 0.01, order=order) for name in "abcd"]
        Race(everyone[:2], seed=seed).run(everyone[2:], Rules("all-rounds", 8))
        return [order[start : start + 4] for start in range(0, len(order), 4)]

    assert all(sorted(one) == list("abcd") for one in orders(0))
    assert len({tuple(one) for one in orders(0)}) > 3
    assert orders(0) == orders(0)
    assert orders(0) != orders(1)


def test_the_same_measurements_give_the_same_verdict():
    found = []
    for _ in range(2):
        one = Simulated("one", 0.0095, 0.05, seed=3)
        race(one, baselines=tuple(Simulated(name, 0.01, 0.05, seed=3) for name in "ab"))
        found.append(verdict_of(one))
    assert found[0] == found[1]


def test_a_round_that_is_left_out_counts_for_nobody():
    one = Simulated("one", 0.005, answers={2: None, 4: None})
    race(one)
    assert [block is None for block in one.blocks][:4] == [False, True, False, True]
    assert verdict_of(one).rounds == FEWEST + 1
    assert len(one.blocks) == FEWEST + 3


def test_contestants_of_a_later_run_are_paired_with_the_rounds_of_that_run():
    baselines = [Simulated("a", 0.010), Simulated("b", 0.010)]
    found: Race[Simulated] = Race(baselines)
    first, second = Simulated("first", 0.005), Simulated("second", 0.0025)
    found.run([first])
    for one in baselines:
        one.seconds = 0.020  # the machine is slower now
    second.seconds = 0.005
    found.run([second])
    assert verdict_of(first).speedup.ratio == pytest.approx(2.0)
    assert verdict_of(second).speedup.ratio == pytest.approx(4.0)
    assert second.blocks[: len(first.blocks)] == [None] * len(first.blocks)


def test_disturbed_rounds_count_and_use_up_none_of_the_rounds():
    one, base = Simulated("one", 0.01, taken=STARVED), Simulated("base", 0.01, taken=STARVED)
    found = race(one, baselines=(base,), rules=Rules("all-rounds", rounds=3))
    assert found.round == 3 * race_rules.LONGER_WHERE_DISTURBED
    assert verdict_of(one).rounds == found.round
    quiet = race(Simulated("one", 0.01, taken=STARVED / 2), rules=Rules("all-rounds", rounds=3))
    assert quiet.round == 3


# ── leaving ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", ["failed", "timeout"])
def test_who_fails_is_one_row_and_the_others_go_on(how):
    bad, good = Simulated("bad", 0.01, answers={3: Exit(how, "no luck")}), Simulated("good", 0.005)
    race(bad, good)
    assert verdict_of(bad) == Verdict(how, rounds=2, note="no luck", so_far=pytest.approx(1.0))
    assert bad.calls == 3
    assert verdict_of(good).status == "won"


def test_who_has_left_before_the_race_keeps_its_reason():
    one = Simulated("one", 0.01)
    one.leave(Exit("failed", "it could not be started"))
    found = race(one)
    assert one.calls == found.round == 0
    assert (verdict_of(one).status, verdict_of(one).note) == ("failed", "it could not be started")


def test_who_has_no_more_work_is_noise_whatever_its_rounds_say():
    one = Simulated("one", 0.005, answers={3: Exit("ended", "the program ends too soon")})
    race(one)
    assert verdict_of(one).status == "noise"
    assert verdict_of(one).undecided


@pytest.mark.parametrize(("seconds", "rounds"), [(0.2, 1), (0.05, 2), (0.02, 4), (0.0124, None)])
def test_what_is_slower_by_far_is_given_up_the_sooner_the_slower_it_is(seconds, rounds):
    one = Simulated("slow", seconds)
    race(one)
    assert verdict_of(one).status == "lost"
    assert one.calls == (rounds or FEWEST + 1)
    assert (one.exit.why == "given-up") is (rounds is not None)


def test_a_single_long_call_is_no_reason_to_give_up():
    class Traced(Simulated):
        def run_block(self) -> Block | Exit | None:
            self.calls += 1
            return Block([0.01] * 7 + ([5.0] if self.calls == 1 else [0.01]), 8, 0.1)

    one = Traced("traces at first", 0.01)
    race(one)
    assert one.calls > 1
    assert one.exit.why != "given-up"


def test_who_is_behind_the_leader_leaves_and_may_still_have_won():
    fast, near, slow = Simulated("fast", 0.002, 0.01), Simulated("near", 0.002, 0.01, 1), Simulated("slow", 0.003, 0.01)
    found = race(fast, near, slow, rules=Rules("behind", rounds=9))
    assert found.leader() in (fast, near)
    assert slow.calls == FEWEST
    assert slow.note == f"behind {found.leader().name}"
    assert verdict_of(slow).status == "won"
    assert (fast.calls, near.calls) == (9, 9)


@pytest.mark.parametrize(("baseline", "status"), [(0.05, "lost"), (5.0, "noise")])
def test_who_has_long_units_and_is_far_behind_leaves_early(baseline, status):
    fast, slow, hopeless = Simulated("fast", 0.1), Simulated("slow", 0.4), Simulated("hopeless", 1.5)
    race(fast, slow, hopeless, baselines=(Simulated("base", baseline),), rules=Rules("behind", rounds=9))
    assert (fast.calls, slow.calls, hopeless.calls) == (9, 3, 1)
    assert verdict_of(slow).speedup is None
    assert verdict_of(slow).status == status


def test_a_claim_is_measured_until_its_interval_is_narrow():
    wide, narrow = (Simulated("one", 0.005, 0.2, seed=1) for _ in range(2))
    race(wide)
    race(narrow, rules=Rules("narrow", rounds=20))
    assert verdict_of(wide).status == verdict_of(narrow).status == "won"
    assert narrow.calls > wide.calls


def test_all_rounds_are_all_of_them():
    one = Simulated("slow", 0.5)
    race(one, rules=Rules("all-rounds", rounds=13))
    assert one.calls == 13


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("limit", "rounds"),
    [
        ({"deadline": 0.0}, 0),
        ({"deadline": 0.0, "fewest_rounds": 3}, 3),
        ({"enough": 0.0}, FEWEST),
        ({"enough": 0.0, "deadline": 0.0, "fewest_rounds": 2}, 2),
    ],
)
def test_the_time_is_up(limit, rounds):
    one = Simulated("one", 0.01)
    found = race(one, rules=Rules("all-rounds"), **limit)
    assert found.round == rounds
    assert verdict_of(one).undecided is (rounds < FEWEST)


@pytest.mark.parametrize(("seconds", "rounds"), [(0.010, FEWEST + 1), (0.005, 1)])
def test_the_time_for_confirming_is_used_to_decide_while_nothing_is_ahead(seconds, rounds):
    one = Simulated("one", seconds)
    found = race(one, deadline=0.0, fewest_rounds=1, last=float("inf"))
    assert found.round == rounds


# ── what is shown ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_rows_of_a_race_under_way():
    shown: list[list[Row]] = []
    found: Race[Simulated] = Race([Simulated("base", 0.010)], show=lambda view: shown.append(list(view.rows())))
    bad = Simulated("bad", 0.01, answers={2: Exit("failed", "no luck")})
    found.run([Simulated("fast", 0.005), bad])
    assert shown[0] == [
        Row("base", 0.010, None, None, None),
        Row("fast", 0.005, None, 2.0, None),
        Row("bad", 0.010, None, 1.0, None),
    ]
    last = shown[-1]
    assert (last[1].status, last[2].status, last[2].note) == ("won", "failed", "no luck")
    assert last[1].speedup == Interval(2.0, 2.0, 2.0)


def test_two_contestants_are_compared_with_each_other():
    one, other = Simulated("one", 0.010), Simulated("other", 0.005)
    race(one, other, rules=Rules("all-rounds", rounds=FEWEST))
    assert compare(one, other) == Interval(*[pytest.approx(2.0)] * 3)
    one.blocks[0] = None
    assert compare(one, other) is None


def test_a_block_knows_its_mean_and_its_usual_unit():
    block = Block([0.1, 0.1, 1.0, 0.1], 8, 0.8)
    assert block.unit_seconds == pytest.approx(1.3 / 8)
    assert block.usual_seconds == pytest.approx(0.05)
    assert block.cpu_unit_seconds == pytest.approx(0.1)
    one = Simulated("one", 0.1)
    one.blocks = [block, None, Block([0.2], 1, 0.0)]
    assert one.unit_seconds() == pytest.approx(statistics.median([1.3 / 8, 0.2]))
    assert one.cpu_times() == [pytest.approx(0.1), None, 1e-9]


def test_few_rounds_decide_only_where_one_is_far_ahead():
    far, near, same = Simulated("far", 0.5), Simulated("near", 0.9), Simulated("same", 1.0)
    bases = (Simulated("a", 1.0), Simulated("b", 1.0))
    race(far, near, same, baselines=bases, rules=Rules("decided", rounds=3, few_rounds=True))
    assert [verdict_of(one).status for one in (far, near, same)] == ["won", "noise", "noise"]
    found = verdict_of(far).speedup
    assert found is not None
    assert 1.2 < found.low < 2.0 < found.high
    assert verdict_of(near).speedup is None
