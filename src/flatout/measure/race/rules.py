"""The thresholds of a race, and who leaves it when. Everything here is a pure function of what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from flatout.measure.interval import confidence_for, rounds_needed
from flatout.model.case import Interval

WORTH = 1.02
"""A gain counts where its whole interval lies beyond this, a loss where it lies below 1 / WORTH. Two copies of the same
program that run side by side differ by a percent or so for as long as they live; nobody changes a program for less."""
PROMISING = 1.05
"""A ratio with which a contestant that has not won yet gets more rounds. With less, many rounds would be needed to show
a gain of some percent."""
CLOSED = 1.25
"""An interval that ends below this is closed where its middle shows no promise: what is left to gain is little."""
FAR_AHEAD = 1.2
"""A gain whose whole interval lies beyond this needs fewer rounds than a sign test does."""
NARROW = 1.3
"""High end over low end of an interval that is narrow enough to be published as a claim."""
MOST_ROUNDS = 20

LONGER_WHERE_DISTURBED = 3
"""A round is disturbed where other processes had the share `STARVED` of all processors. It counts in the intervals,
which need no quiet machine to be right, but uses up none of the rounds: others are added for it, up to this many times
the rounds."""

GIVEN_UP: tuple[tuple[int, float], ...] = ((4, 0.8), (2, 0.4), (1, 0.1))
"""Rounds, and the share of a baseline's speed that a contestant has reached in none of them when it is given up. What
is slow beyond measure would take the time that the others need to be decided."""
HOPELESS = 10.0
FAR_BEHIND = ((3, 1 / 3), (1, 1 / HOPELESS))
"""The same against the leader of a race, for contestants with long units only: short ones cost so little that each may
stay until it has an interval to show."""
LONG_UNIT_SECONDS = 0.25
"""A unit this long is run once in a block: a second one tells little and costs much."""

Until = Literal["decided", "closed", "narrow", "behind", "all-rounds"]


@dataclass(frozen=True)
class Rules:
    """How long contestants stay in a race."""

    until: Until = "decided"
    """`decided`: a contestant leaves once it has won, lost or shows no promise. `closed`: it leaves for want of promise
    only once its interval is closed. `narrow`: the same, and a winner stays until its interval is narrow. `behind`: it
    leaves once it is behind the leader. `all-rounds`: it stays."""
    rounds: int = MOST_ROUNDS
    """Undisturbed ones."""
    comparisons: int = 1
    """Contestants that are compared with the same baselines, in this race and in others whose best is taken."""
    few_rounds: bool = False
    """Whether rounds that are too few for a sign test decide where a contestant is far ahead: where a round takes long,
    and what has won is confirmed in others."""

    @property
    def confidence(self) -> float:
        return confidence_for(self.comparisons)

    @property
    def fewest_rounds(self) -> int:
        """For an interval."""
        return rounds_needed(self.confidence)


def status_of(speedup: Interval | None) -> Literal["won", "lost", "noise"]:
    """What an interval says; None or an unbounded one says nothing."""
    if speedup is None:
        return "noise"
    if speedup.low > WORTH:
        return "won"
    return "lost" if speedup.high < 1 / WORTH else "noise"


def is_decided(speedup: Interval, rounds: int, rules: Rules) -> bool:
    """Whether more rounds are not worth their time, against the baselines.

    One round more than an interval needs, so that a single strange round does not decide.
    """
    enough = rules.until != "narrow" or speedup.high < NARROW * speedup.low
    if rounds <= rules.fewest_rounds:
        return rules.few_rounds and speedup.low > FAR_AHEAD and enough
    if speedup.low > WORTH:
        return enough
    if speedup.high < 1 / WORTH:
        return True
    return speedup.ratio < PROMISING and (rules.until == "decided" or speedup.high < CLOSED)


def is_slower_by_far(ratios: Sequence[float], rounds: int, ladder: Sequence[tuple[int, float]]) -> bool:
    """Whether all ratios stay below the limit that the ladder has for this many rounds."""
    limit = next((limit for least, limit in ladder if rounds >= least), 0.0)
    return bool(ratios) and all(ratio < limit for ratio in ratios)


DEFAULT = Rules()
