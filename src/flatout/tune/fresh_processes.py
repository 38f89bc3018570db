"""What is to be claimed runs again in processes that are started anew several times: a claim holds for the user's next
run, not only for the processes that ran here. `flatout.measure.race.processes` makes the interval."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from flatout.measure.interval import confidence_for
from flatout.measure.race import WORTH, Verdict
from flatout.model.case import Trial
from flatout.tune.conclusions import is_faster
from flatout.tune.contestant import Contestant
from flatout.tune.context import Context
from flatout.tune.race import OVERTIME_SECONDS, Race

MOST_GROUPS = 2
"""Of rounds in which what is to be claimed is started anew. More make the interval narrower, and each costs four starts
of the program."""
SHARE_OF_TIME = 0.5
"""Of the time that is left: for these groups."""
NOT_BEYOND = "not beyond what processes of the same program differ by"


class FreshProcesses:
    def __init__(self, context: Context, race: Race) -> None:
        self.context = context
        self.race = race
        self.begun = 0
        """The round with which the last groups begin."""
        self.renewed: list[Contestant] = []
        """What was started anew to be claimed. Groups of rounds alone do not show that: a race may be rewound."""
        rounds = race.rounds_of_group()
        earlier = [other for other in context.races if other is not race]
        race.known = [apart for other in earlier for apart in other.apart_once(rounds)]

    def run(self, finalists: Sequence[Contestant], chosen: Sequence[Contestant]) -> None:
        """Race these: the levers, their patch, a set that lacks one of them. `chosen`: the best of several sets, so
        the rounds that have shown it do not count."""
        race = self.race
        self.begun = race.round
        groups = self._groups(len(finalists), 0 if any(finalists[0].blocks) else 1)
        if not groups:
            return
        self.context.progress.phase("confirming again, in processes started anew")
        for one in finalists:
            one.counts_from = race.round if one in chosen else 0
        race.confirm(finalists, groups, race.rounds_of_group())
        self.renewed += finalists
        for one in finalists:
            one.verdict = race.claim(one)

    def shows_faster(self, one: Contestant, other: Contestant) -> bool:
        """Whether one was faster than another in each group of rounds that was started anew, and there were some."""
        begins = [begin for begin in self.race.groups if begin >= self.begun]
        found = []
        for begin, end in itertools.pairwise([*begins, self.race.round]):
            times = zip(one.unit_times()[begin:end], other.unit_times()[begin:end], strict=False)
            ratios = [theirs / own for own, theirs in times if own is not None and theirs is not None]
            found += [statistics.median(ratios)] if ratios else []
        return bool(found) and min(found) > WORTH

    def settle(self, raced: Mapping[Trial, Contestant], finalist: Contestant | None) -> None:
        """What holds for other processes takes the place of what single processes have shown, in all these trials.

        What was not started anew is one of several with one process each.
        """
        for trial, one in raced.items():
            if one.verdict is None:
                continue
            anew = one is finalist and one in self.renewed
            verdict = one.verdict if anew else self.race.claim(one, confidence_for(len(raced)))
            if trial.speedup is not None or verdict.speedup is not None:
                self.context.trials.replace(trial, _settled(trial, verdict, one))

    def _groups(self, finalists: int, fewest: int) -> int:
        """How many groups of rounds there is time for beside the whole runs, which are processes of their own too."""
        clock = self.context.clock
        beside = clock.left() - clock.for_run - clock.for_whole_runs(self.context.seconds_of_program)
        left = max(min(SHARE_OF_TIME * clock.left(), beside), OVERTIME_SECONDS)
        groups = MOST_GROUPS
        while groups > fewest and self.race.seconds_to_confirm(finalists, groups) > left:
            groups -= 1
        return groups


def _settled(trial: Trial, verdict: Verdict, one: Contestant) -> Trial:
    """Numbers that differ, and what failed, stay as they are. So does what its own rounds have not shown: an interval
    beyond the noise would close a trial that nothing has confirmed."""
    if verdict.status == "won" and trial.status == "noise" and not is_faster(trial):
        return trial
    fell = trial.status == "won" and verdict.status != "won"
    return replace(
        trial,
        speedup=verdict.speedup,
        status=verdict.status if trial.status in ("won", "lost") else trial.status,
        rounds=max(trial.rounds, verdict.rounds),
        step_ms=one.step_ms(),
        note="; ".join(filter(None, [trial.note, NOT_BEYOND if fell else ""])),
    )
