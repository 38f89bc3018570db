"""The race itself: rounds until every contestant is decided, the rounds are used up, or the time is."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from flatout.measure.interval import CONFIDENCE
from flatout.measure.processors import STARVED
from flatout.measure.race.comparison import claimed, compare, judge, ratios
from flatout.measure.race.contestant import Contestant, Exit, Status, Verdict
from flatout.measure.race.processes import Fit, apart, fit
from flatout.measure.race.rules import (
    DEFAULT,
    FAR_BEHIND,
    GIVEN_UP,
    LONG_UNIT_SECONDS,
    LONGER_WHERE_DISTURBED,
    PROMISING,
    Rules,
    is_decided,
    is_slower_by_far,
)
from flatout.model.case import Interval

AnyContestant = TypeVar("AnyContestant", bound=Contestant)


@dataclass(frozen=True)
class TimeLimit:
    """When a race ends for want of time; moments of `time.monotonic()`."""

    deadline: float = math.inf
    """No round begins after it…"""
    fewest_rounds: int = 0
    """…except the first few."""
    enough: float = math.inf
    """From then on, no rounds beyond those that an interval needs."""
    last: float = -math.inf
    """Rounds go on after the deadline, up to here, while no contestant is ahead: the time after the deadline is for
    confirming a winner, and there will be none."""


UNLIMITED = TimeLimit()


@dataclass(frozen=True)
class Row:
    """One contestant of a race under way, as it is shown."""

    name: str
    unit_seconds: float | None
    speedup: Interval | None
    so_far: float | None
    """The ratio, where there is no interval yet."""
    status: Status | None
    """None while it is racing, and of a baseline."""
    note: str = ""


class View(Protocol):
    """A race under way. The rows are made when they are asked for: often nobody looks."""

    def rows(self) -> Sequence[Row]: ...


class Race(Generic[AnyContestant]):
    """Baselines, and the contestants that are compared with them in the same rounds.

    `run` may be called again with other contestants: the baselines go on. The order within a round comes from `seed`.
    """

    def __init__(
        self,
        baselines: Sequence[AnyContestant],
        *,
        show: Callable[[View], None] = lambda view: None,
        seed: int = 0,
    ) -> None:
        self.baselines = list(baselines)
        self.contestants: list[AnyContestant] = []
        self.rules = Rules()
        self.round = 0
        self.taken: list[float] = []
        """Of each round: the share of the processors that other processes had."""
        self.groups = [0]
        """The rounds with which groups of rounds begin: between two of them everything was started anew."""
        self.known: Sequence[float] = ()
        """Differences between two baselines that were seen before, as logarithms."""
        self.given_up = GIVEN_UP
        """When a contestant is given up before it has an interval."""
        self._fitted: tuple[tuple[int, ...], Fit] | None = None
        self._show = show
        self._random = random.Random(seed)

    def run(
        self,
        contestants: Sequence[AnyContestant],
        rules: Rules = DEFAULT,
        limit: TimeLimit = UNLIMITED,
    ) -> None:
        """Race these against the baselines; afterwards each has left, with its verdict.

        Without any contestant the baselines run alone.
        """
        self.rules = rules
        self.contestants += [one for one in contestants if one not in self.contestants]
        self.adjust(contestants)
        first, undisturbed = self.round, 0
        for _ in range(LONGER_WHERE_DISTURBED * rules.rounds):
            active = [one for one in contestants if one.active]
            if undisturbed == rules.rounds or (contestants and not active):
                break
            if self._time_is_up(contestants, limit, self.round - first) or not self._one_round(active):
                break
            undisturbed += self.taken[-1] < STARVED
            self.adjust(contestants)
            self._decide(active)
            self._show(self)
        for one in contestants:
            if one.active:
                one.leave(Exit("finished"))
            one.verdict = one.verdict or self.verdict(one)

    def renew(self, contestants: Sequence[AnyContestant]) -> None:
        """Begin a group of rounds: the baselines and these are started anew."""
        self.begin_group()
        for one in (*self.baselines, *contestants):
            one.renew()

    def begin_group(self) -> None:
        if self.round > self.groups[-1]:
            self.groups.append(self.round)

    def confirm(self, contestants: Sequence[AnyContestant], groups: int, rounds: int) -> None:
        """Groups of exactly so many rounds with these alone, each in fresh processes."""
        for _ in range(groups):
            self.renew(contestants)
            taking_part = [one for one in contestants if one.active]
            if taking_part:
                self.run(taking_part, Rules("all-rounds", rounds), TimeLimit(0.0, fewest_rounds=rounds))

    def claim(self, one: AnyContestant, confidence: float = CONFIDENCE) -> Verdict:
        """What may be said of other processes of it; see `race.processes`."""
        return claimed(self.verdict(one), self.fitted().interval(one, confidence))

    def fitted(self) -> Fit:
        """How far processes lie apart, by all that has run so far."""
        counted = [other for other in self.contestants if not other.broken]
        state = (self.round, len(self.known), *(other.counts_from for other in counted))
        if self._fitted is None or self._fitted[0] != state:
            self._fitted = (state, fit(self.baselines, counted, self.groups, self.known))
        return self._fitted[1]

    def apart(self, rounds: int) -> list[float]:
        """By how much the two baselines differed in so many rounds of each group, as logarithms."""
        return apart(self.baselines, self.groups, rounds)

    def verdict(self, one: AnyContestant) -> Verdict:
        return one.verdict or judge(self.baselines, one, self.rules)

    def rows(self) -> list[Row]:
        """Baselines first."""
        found = [Row(one.name, one.unit_seconds(), None, None, None, one.note) for one in self.baselines]
        for one in self.contestants:
            verdict = self.verdict(one)
            status = None if one.active else verdict.status
            found.append(Row(one.name, one.unit_seconds(), verdict.speedup, verdict.so_far, status, one.note))
        return found

    def leader(self) -> AnyContestant | None:
        """The contestant with the shortest unit."""
        times = [(one.unit_seconds(), one) for one in self.contestants if not one.broken]
        known = [(seconds, one) for seconds, one in times if seconds is not None]
        return min(known, key=lambda item: item[0])[1] if known else None

    def close(self) -> None:
        for one in (*self.baselines, *self.contestants):
            one.close()

    # ── for subclasses ───────────────────────────────────────────────────────────────────────────────────────

    def prepare(self, everyone: Sequence[AnyContestant]) -> None:
        """Get all of them ready for the next round. Nothing is timed meanwhile."""

    def adjust(self, contestants: Sequence[AnyContestant]) -> None:
        """Set the size of the blocks; called before the first round, and after each before anything is decided."""

    # ── rounds ───────────────────────────────────────────────────────────────────────────────────────────────

    def _one_round(self, contestants: Sequence[AnyContestant]) -> bool:
        """False where there is no baseline left."""
        everyone = [*(one for one in self.baselines if one.active), *contestants]
        if len(everyone) == len(contestants):
            return False
        for one in everyone:
            one.blocks += [None] * (self.round - len(one.blocks))
        self.prepare(everyone)
        taken = []
        for one in self._random.sample(everyone, len(everyone)):
            block = one.run_block() if one.active else None
            if isinstance(block, Exit):
                one.leave(block)
                block = None
            one.blocks.append(block)
            taken += [block.taken] if block is not None else []
        self.round += 1
        self.taken.append(statistics.fmean(taken or [0.0]))
        return any(one.active for one in self.baselines)

    def _time_is_up(self, contestants: Sequence[AnyContestant], limit: TimeLimit, rounds: int) -> bool:
        now = time.monotonic()
        if now > limit.enough and rounds >= self.rules.fewest_rounds:
            return True
        if now <= limit.deadline or rounds < limit.fewest_rounds:
            return False
        return now > limit.last or any(map(self._is_ahead, contestants))

    def _is_ahead(self, one: AnyContestant) -> bool:
        if one.verdict is not None:
            return one.verdict.status == "won"
        found = ratios(self.baselines, one)
        return one.active and bool(found) and statistics.median(found) > PROMISING

    # ── deciding ─────────────────────────────────────────────────────────────────────────────────────────────

    def _decide(self, contestants: Sequence[AnyContestant]) -> None:
        """Take out those that more rounds are not worth their time for."""
        for one in contestants:
            exit = self._exit_of(one) if one.active else None
            if exit is not None:
                one.leave(exit)
            if not one.active:
                one.verdict = self.verdict(one)

    def _exit_of(self, one: AnyContestant) -> Exit | None:
        if self.rules.until == "all-rounds":
            return None
        return self._behind_leader(one) if self.rules.until == "behind" else self._decided(one)

    def _decided(self, one: AnyContestant) -> Exit | None:
        verdict = judge(self.baselines, one, self.rules, with_cpu=False)
        if verdict.rounds < self.rules.fewest_rounds:
            # The usual unit as well: a single long one tells nothing in few rounds.
            found = [*ratios(self.baselines, one), *ratios(self.baselines, one, "usual unit")]
            if is_slower_by_far(found, verdict.rounds, self.given_up):
                return Exit("given-up", f"slower by far in each round, given up after {verdict.rounds}")
        if verdict.speedup is not None and is_decided(verdict.speedup, verdict.rounds, self.rules):
            return Exit("decided")
        return None

    def _behind_leader(self, one: AnyContestant) -> Exit | None:
        leader = self.leader()
        if leader is None or one is leader:
            return None
        found = ratios([leader], one)
        if (one.unit_seconds() or 0.0) > LONG_UNIT_SECONDS and is_slower_by_far(found, len(found), FAR_BEHIND):
            return Exit("given-up", f"behind {leader.name} by far in each of {len(found)} rounds")
        interval = compare(leader, one)
        return Exit("behind", f"behind {leader.name}") if interval is not None and interval.high < 1 else None
