"""Levers raced side by side, each on top of what has won, while there is time for it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from flatout.measure.race import Rules, TimeLimit
from flatout.measure.race.rules import Until
from flatout.report import words
from flatout.tune.conclusions import NO_TIME
from flatout.tune.contestant import Contestant
from flatout.tune.context import Context
from flatout.tune.race import Race

OF_A_GROUP = 0.5
"""Share of the time for trying that levers which are tried side by side may take."""


class Attempts:
    """On the machine that tunes, and on any other one that races some of the levers."""

    def __init__(self, context: Context, base: tuple[str, ...] = (), *, ahead: bool = False) -> None:
        self.context = context
        self.base = base
        """Levers that have won already: further ones are tried on top of these."""
        self.winners: list[str] = []
        self.ahead = ahead
        """Whether something has won, or has looked good, on another machine."""
        self.until: float | None = None
        """The end of the time for what is tried now, where that is before the end of trying."""

    def race_all(self, race: Race, levers: Sequence[str], comparisons: int, until: Until = "decided") -> None:
        """A group at a time."""
        left = list(levers)
        while left:
            size = self._group_size(race, len(left))
            group, left = left[:size], left[size:]
            self._try(race, group, comparisons, until)

    def _group_size(self, race: Race, untried: int) -> int:
        """As many as memory and time allow, and one at least. Where starts or steps are slow, the first ones are tried
        by themselves: many together would have a round or two each, and none would be decided."""
        size = min(untried, self.context.alive_at_once(race))
        left = OF_A_GROUP * min(self.context.clock.left_to_explore(), self._time_to_try())
        while size > 1 and race.seconds_for(size) > left:
            size -= 1
        return size

    def _try(self, race: Race, levers: Sequence[str], comparisons: int, until: Until = "decided") -> None:
        """These levers side by side, each on top of the base."""
        context = self.context
        if self._time_to_try() < race.seconds_to_start(1):
            context.trials.skip(levers, f"{NO_TIME}: a larger --budget tries it")
            return
        contestants = [context.contestant((*self.base, text)) for text in levers]
        told = "; ".join(words.change_here(one.levers[-1:]) for one in contestants)
        context.progress.phase(f"trying {'this' if len(contestants) == 1 else 'these'}: {told}")
        if context.varies:
            race.rewind()
        race.start(contestants)
        if context.learn_of(contestants, max((one.done for one in race.baselines), default=0)):
            assert context.ended_after is not None
            race.shorten(context.ended_after)
            contestants = [context.contestant((*self.base, text)) for text in levers]
            race.start(contestants)
        self._run(race, contestants, Rules(until, comparisons=comparisons, few_rounds=True))
        context.trials.keep_all(race, contestants, "single")

    def _run(self, race: Race, contestants: Sequence[Contestant], rules: Rules) -> None:
        """Where nothing is to be confirmed, on to the end of the time."""
        clock = self.context.clock
        last = clock.exploring_until if self._has_to_confirm() else clock.closing
        deadline = min(clock.exploring_until, self.until or clock.end)
        race.run(contestants, rules, TimeLimit(deadline, last=min(last, self.until or last)))

    def _time_to_try(self) -> float:
        """Seconds. Where nothing is ahead, there is nothing to confirm, and trying goes on to the end, or until the
        cures of the run have their turn."""
        clock = self.context.clock
        left = clock.left_to_explore() if self._has_to_confirm() else clock.left() - clock.for_run
        return left if self.until is None else min(left, self.until - time.monotonic())

    def _has_to_confirm(self) -> bool:
        trials = self.context.trials
        return self.ahead or bool(self.winners) or trials.any_single_won or bool(trials.nominated)
