"""Intervals that hold for other processes: the fit over groups of rounds, and its coverage in a small simulation."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from flatout.measure import student
from flatout.measure.race import Block, Contestant, Exit, Race, Rules, TimeLimit
from flatout.measure.race.processes import FEWEST_FREEDOM, PRIOR, fit

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import coverage


@dataclass(eq=False)
class Started(Contestant):
    """Its time is another one in each process: the next of `processes`, over and over."""

    title: str
    processes: tuple[float, ...]
    starts: int = 0
    alive: bool = False
    breaks_at: int = 99
    order: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.title

    def run_block(self) -> Block | Exit:
        if not self.alive:
            self.starts, self.alive = self.starts + 1, True
        if self.starts >= self.breaks_at:
            return Exit("failed", "it broke")
        seconds = self.processes[(self.starts - 1) % len(self.processes)]
        return Block([seconds], 1, seconds)

    def close(self) -> None:
        self.alive = False


def raced(*contestants: Started, baselines: tuple[Started, ...] = (), groups: int = 2) -> Race[Started]:
    two = baselines or (Started("a", (1.0, 1.02, 0.99)), Started("b", (1.01, 0.99, 1.0)))
    race: Race[Started] = Race(two)
    race.run(contestants, Rules(rounds=7), TimeLimit())
    race.confirm(contestants, groups, 4)
    return race


@pytest.mark.parametrize(
    ("confidence", "freedom", "quantile"), [(0.95, 1, 12.706), (0.95, 2, 4.303), (0.95, 7, 2.365), (0.99, 30, 2.750)]
)
def test_quantiles_of_student(confidence, freedom, quantile):
    assert student.quantile(confidence, freedom) == pytest.approx(quantile, abs=1e-3)


def test_groups_run_in_fresh_processes_and_the_ratio_is_their_geometric_mean():
    one = Started("one", (0.5, 0.52, 0.48))
    race = raced(one)
    assert race.groups == [0, 7, 11]
    assert (one.starts, [base.starts for base in race.baselines]) == (3, [3, 3])
    found = race.claim(one)
    base = math.sqrt(1.0 * 1.01) * math.sqrt(1.02 * 0.99) * math.sqrt(0.99 * 1.0)
    assert found.status == "won"
    assert found.speedup.ratio == pytest.approx((base / (0.5 * 0.52 * 0.48)) ** (1 / 3))
    assert found.speedup.high / found.speedup.low > 1.05, "processes lie some percent apart"


def test_rounds_by_which_it_was_chosen_do_not_count():
    one = Started("one", (0.25, 0.5, 0.5))
    race = raced(one)
    one.counts_from = 7
    assert race.claim(one).speedup.ratio == pytest.approx(2.0, rel=0.02)


def test_what_breaks_in_a_later_process_is_broken():
    one = Started("one", (0.5,), breaks_at=2)
    race = raced(one)
    assert race.claim(one).status == "failed"
    assert one.starts == 2, "it is not started again"


def test_with_one_process_each_an_error_of_the_process_is_assumed():
    one = Started("one", (0.5,))
    race = raced(one, groups=0)
    found = fit(race.baselines, [one], race.groups)
    assert found.spread.freedom == FEWEST_FREEDOM
    reach = math.log(found.interval(one, 0.95).high / 2)
    assert reach > student.quantile(0.95, FEWEST_FREEDOM) * PRIOR


def test_a_contestant_that_is_less_even_has_the_wider_interval():
    even, uneven = Started("even", (0.5, 0.501, 0.5)), Started("uneven", (0.45, 0.55, 0.5))
    race = raced(even, uneven)
    widths = [math.log(race.claim(one).speedup.high / race.claim(one).speedup.low) for one in (even, uneven)]
    assert widths[1] > 1.2 * widths[0]


def test_known_differences_between_baselines_add_degrees_of_freedom():
    one = Started("one", (0.5,))
    race = raced(one)
    assert fit(race.baselines, [one], race.groups, [0.01, -0.02]).spread.freedom == 2 + 5


@pytest.mark.parametrize("cell", [(0.003, 0.02, 1.3), (0.01, 0.05, 3.0), (0.03, 0.0, 1.3), (0.003, 0.03, 1.0)])
def test_claims_of_a_tune_hold_for_other_processes(cell):
    """Seeded: the same in each run. With one process each, the first cell had about 60 %."""
    found = coverage.tune_cell(cell, 60)
    assert found.tried == 60
    assert found.covered >= 55


def test_nothing_is_claimed_where_nothing_helps():
    found = coverage.null_cell((0.003, 0.03), 40)
    assert found.nominated > 10, "what one process shows is not enough"
    assert found.claimed == 0


def test_a_gain_is_still_found():
    assert coverage.tune_cell((0.01, 0.02, 1.3), 40).claimed == 40


def test_where_steps_differ_the_sums_of_a_group_are_compared():
    """Playing becomes a hundred times as fast, learning stays as it is: the median of the rounds depends on which of
    the two came more often."""

    def blocks(play: float, learn: float, error: float) -> list[Block | None]:
        times = [play, play, learn, play, learn, learn, play]
        return [Block([error * time], 1, 0.0) for time in times]

    def contestant(title: str, play: float, learn: float, *errors: float) -> Started:
        one = Started(title, (1.0,))
        one.varies = True
        one.blocks = [block for error in errors for block in blocks(play, learn, error)]
        return one

    baselines = [contestant("a", 1.0, 1.0, 1.0, 1.01), contestant("b", 1.0, 1.0, 1.01, 1.0)]
    faster = contestant("faster", 0.01, 1.0, 1.0, 1.01)
    interval = fit(baselines, [faster], [0, 7]).interval(faster, 0.95)
    assert interval is not None
    assert interval.ratio == pytest.approx(7 / (4 * 0.01 + 3), rel=0.01)
    assert interval.low > 2.1
    assert interval.high < 2.5
