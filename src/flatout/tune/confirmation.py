"""Confirms in fresh processes what has won: together, and without each lever in turn.

A lever is in the claim only where it pays in the presence of the others. One that the others are as fast without is a
passenger, and is dropped.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from flatout.measure.interval import confidence_for
from flatout.measure.race import WORTH, Rules, TimeLimit, compare
from flatout.measure.race.comparison import FEW_ROUNDS
from flatout.model.case import Case, Trial
from flatout.model.errors import FlatoutError
from flatout.model.levers import shown
from flatout.trial import patch
from flatout.tune import plan
from flatout.tune.conclusions import ratio
from flatout.tune.contestant import Contestant
from flatout.tune.context import Context
from flatout.tune.fresh_processes import FreshProcesses
from flatout.tune.race import Race

MOST_LEVERS = 5
"""Confirmed together: each further one needs a trial without it."""
MOST_RACES = 3
CONFIRMING_SECONDS = 40.0
"""What it gets even where the budget is used up: nothing is claimed without it."""
MOST_CONFIRMING_ROUNDS = 40
FOR_THE_PATCH, MOST_FOR_THE_PATCH = 0.45, 0.6
"""Of the time that is left: for the patch and whole runs, at least, and where whole runs take long."""
WORTH_A_PATCH = 0.8
"""Of the best ratio: what a set that a patch can hold has to reach to be claimed in place of one that none can."""
ADDS_LITTLE = 1.1
"""A lever that makes the others faster by less has to do so in other processes as well."""

Levers = tuple[str, ...]


@dataclass(frozen=True)
class Confirmed:
    race: Race
    """Its baselines are still alive."""
    sets: Sequence[Trial]
    """Levers that have won together, those to be claimed first."""
    patched: Mapping[Levers, Contestant]
    """Programs with the patch for these levers, which ran in the same rounds."""


class Confirmation:
    def __init__(self, context: Context) -> None:
        self.context = context
        self.raced: dict[Levers, Contestant] = {}
        self.patched: dict[Levers, Contestant] = {}
        self.finalist: Levers = ()
        """The set that was started anew, to be claimed."""

    def run(self, winners: Sequence[str]) -> Confirmed:
        context = self.context
        full = together(winners)
        can = writable(context.case, full)
        context.progress.phase("confirming in fresh processes")
        until = _deadline(context)
        race = context.race(context.launch)
        known = context.journal.known
        sets = [one for one in sets_to_race(full, can) if not known("combination", one)]
        self._race(race, sets, until, self._with_patch(tuple(text for text in full if text in can)))
        for _ in range(MOST_RACES - 1):
            best = self._best()
            missing = [one for one in without_one(best.levers) if not self._trial(one)] if best else []
            if best is None or not missing or race.seconds_for(len(missing) + 1) > until - time.monotonic():
                break
            self._race(race, [*missing, best.levers], until)
        return Confirmed(race, self._decided(race), self.patched)

    def _decided(self, race: Race) -> list[Trial]:
        """What has won in processes started anew. Where the set that was to be claimed does not hold there, one that
        was set aside for it has its turn: a larger set may hold that had seemed no faster."""
        ordered = self._in_fresh_processes(race, self._to_be_claimed(race))
        if ordered and not self._won_of(ordered[:1]) and self.context.clock.left() > 0:
            ordered = self._in_fresh_processes(race, self._to_be_claimed(race))
        return self._won_of(ordered)

    def _won_of(self, sets: Sequence[Levers]) -> list[Trial]:
        won = {one.levers: one for one in self._won()}
        return [won[levers] for levers in sets if levers in won]

    def _to_be_claimed(self, race: Race) -> list[Levers]:
        """Sets that have won, the first of which keeps the numbers. Only that one is checked here: comparing takes as
        long as racing."""
        while (best := self._best()) is not None:
            first, *others = self._in_order(best)
            if not first.parity:
                one = self.raced.get(first.levers) or self.context.contestant(first.levers)
                first = self.context.trials.check(race, one, first)
            if first.status == "won":
                return [first.levers, *(one.levers for one in others)]
            self._compare_what_waited(race, first.levers)
        return []

    def _compare_what_waited(self, race: Race, levers: Levers) -> None:
        """Levers of a set that has fallen, where they were not compared by themselves yet. Sets with one that does not
        keep the numbers fall too."""
        trials = self.context.trials
        for single in trials.waiting(levers):
            found = trials.check(race, self.context.contestant(single.levers), single)
            if found.status == "won":
                continue
            for one in self._won():
                if single.levers[-1] in one.levers:
                    note = "; ".join(filter(None, [one.note, f"{shown(single.levers[-1:])}: {found.note}"]))
                    trials.replace(one, replace(one, status=found.status, parity=found.parity, note=note))

    def _in_fresh_processes(self, race: Race, ordered: list[Levers]) -> list[Levers]:
        """That to be claimed first, with its patch; then all that was raced is settled. A lever that adds little is in
        the claim only where these processes show it too."""
        fresh, one = FreshProcesses(self.context, race), None
        while ordered:
            self.finalist = levers = ordered[0]
            one = self.raced.get(levers) or self.context.contestant(levers)
            lighter = self._lighter(levers)
            patched = [self.patched[levers]] if levers in self.patched else []
            if not patched and lighter is None:
                patched = self._with_patch(levers)
            rivals = [self.raced[lighter.levers]] if lighter is not None else []
            fresh.run([one, *patched, *rivals], chosen=[one, *rivals] if len(self.raced) > 1 else [])
            self.raced[levers] = one
            self.patched.update({each.levers: each for each in patched})
            if lighter is None or rivals[0].broken or fresh.shows_faster(one, rivals[0]):
                break
            self._note_passengers(next(each for each in self._won() if each.levers == levers), lighter)
            self.finalist, one = lighter.levers, rivals[0]
            ordered = [lighter.levers, *(each for each in ordered[1:] if not set(each) >= set(lighter.levers))]
            if self._lighter(lighter.levers) is None:
                break
        trials = {levers: self._trial(levers) for levers in self.raced}
        fresh.settle({trial: self.raced[levers] for levers, trial in trials.items() if trial is not None}, one)
        return ordered

    def _lighter(self, levers: Levers) -> Trial | None:
        """The fastest of the sets that lack one lever, where that lever adds less than a tenth."""
        won = self._won()
        own = next((one for one in won if one.levers == levers), None)
        sets = [set(one) for one in without_one(levers)]
        near = [
            one
            for one in won
            if own is not None
            and set(one.levers) in sets
            and one.levers in self.raced
            and ratio(own) < ADDS_LITTLE * ratio(one)
        ]
        return max(near, key=ratio, default=None)

    def _with_patch(self, levers: Levers) -> list[Contestant]:
        """The patched program in the same rounds, where one patch is likely to be the claim."""
        if not levers:
            return []
        try:
            made = patch.make(self.context.case, levers)
        except FlatoutError:
            return []
        one = self.context.patched(made, levers) if made.changes and not made.unwritten else None
        return [one] if one is not None else []

    def _race(self, race: Race, sets: Sequence[Levers], until: float, patched: Sequence[Contestant] = ()) -> None:
        context = self.context
        contestants = [context.contestant(levers) for levers in sets]
        affordable = _affordable(race, [*contestants[:1], *patched, *contestants[1:]], until - time.monotonic())
        if not affordable:
            return
        if context.varies:
            race.rewind()
        race.start(affordable)
        rules = Rules("narrow", rounds=MOST_CONFIRMING_ROUNDS, comparisons=len(affordable), few_rounds=True)
        race.run(
            affordable, rules, TimeLimit(until, fewest_rounds=race.rounds_past_the_deadline(rules, len(affordable)))
        )
        levered = [one for one in affordable if one not in patched]
        fresh = [one for one in levered if one.levers not in self.raced]
        self.raced.update({one.levers: one for one in levered})
        self.patched.update({one.levers: one for one in affordable if one in patched})
        context.trials.keep_all(race, fresh, "combination", check=False)
        self._decide_by_processes(race, fresh)

    def _decide_by_processes(self, race: Race, raced: Sequence[Contestant]) -> None:
        """What ran in too few rounds for a sign test has an interval all the same: that which holds for other
        processes, by how far those of the program lie apart."""
        for one in raced:
            trial = self._trial(one.levers)
            if trial is None or not trial.undecided or trial.rounds < FEW_ROUNDS:
                continue
            claim = race.claim(one, confidence_for(len(raced)))
            if claim.status == "won":
                self.context.trials.replace(trial, replace(trial, status="won", speedup=claim.speedup))

    # ── what pays ────────────────────────────────────────────────────────────────────────────────────────────

    def _trial(self, levers: Levers) -> Trial | None:
        found = [
            one for one in self.context.trials.found if one.stage == "combination" and set(one.levers) == set(levers)
        ]
        return found[-1] if found else None

    def _won(self) -> list[Trial]:
        return [one for one in self.context.trials.found if one.stage == "combination" and one.status == "won"]

    def _best(self) -> Trial | None:
        """The fastest set, without its passengers."""
        won = self._won()
        best = max(won, key=ratio, default=None)
        while best is not None:
            smaller = [trial for one in without_one(best.levers) if (trial := self._trial(one)) in won]
            lighter = [one for one in smaller if one is not None and not self._pays(best, one)]
            if not lighter:
                return best
            lightest = max(lighter, key=ratio)
            self._note_passengers(best, lightest)
            best = lightest
        return None

    def _pays(self, best: Trial, without: Trial) -> bool:
        """Whether the lever that `without` lacks makes the rest faster."""
        one, other = self.raced.get(best.levers), self.raced.get(without.levers)
        found = compare(other, one) if one is not None and other is not None else None
        if found is None:
            return ratio(best) > 1.05 * ratio(without)
        return found.low > 1 and found.ratio > WORTH

    def _note_passengers(self, best: Trial, without: Trial) -> None:
        text = f"no faster than without {shown([one for one in best.levers if one not in without.levers])}"
        if text not in best.note:
            noted = replace(best, note="; ".join(filter(None, [best.note, text])))
            self.context.trials.replace(best, noted)

    def _in_order(self, best: Trial) -> list[Trial]:
        """That to be claimed first, then what may be claimed in its place, the fastest first."""
        won = self._won()
        best = next(one for one in won if one.levers == best.levers)
        others = sorted((one for one in won if one is not best), key=lambda one: -ratio(one))
        rest = [best, *(one for one in others if not set(one.levers) > set(best.levers))]
        can = writable(self.context.case, sorted({text for one in rest for text in one.levers}))
        whole = [one for one in rest if can.issuperset(one.levers) and ratio(one) >= WORTH_A_PATCH * ratio(best)]
        return [*whole[:1], *(one for one in rest if one not in whole[:1])]


def together(winners: Sequence[str]) -> Levers:
    """Of what has won alone, what is confirmed: levers that exclude a better one are not in it."""
    return plan.combinations(winners)[-1][:MOST_LEVERS] if winners else ()


def sets_to_race(full: Levers, can: Iterable[str]) -> list[Levers]:
    """All together, the best alone, each left out in turn, and those that a patch can hold; without repetition."""
    patchable = tuple(text for text in full if text in set(can))
    sets = [full, full[:1], patchable, *without_one(full), *without_one(patchable)]
    return [one for one in dict.fromkeys(sets) if one]


def without_one(levers: Levers) -> list[Levers]:
    if len(levers) < 2:
        return []
    return [tuple(text for text in levers if text != left_out) for left_out in reversed(levers)]


def writable(case: Case, levers: Sequence[str]) -> set[str]:
    """Those of the levers that can be written as an edit of this very code."""
    found = set()
    for text in levers:
        try:
            found |= set(patch.make(case, [text]).written)
        except FlatoutError:
            continue
    return found


def _deadline(context: Context) -> float:
    """Nothing is claimed without its confirmation: it gets some time even where the budget was very small."""
    clock = context.clock
    left = clock.left() - clock.for_run
    after = clock.anew + clock.for_whole_runs(context.seconds_of_program)
    kept = min(max(after, FOR_THE_PATCH * left), MOST_FOR_THE_PATCH * left)
    return max(clock.end - clock.for_run - kept, time.monotonic() + CONFIRMING_SECONDS)


def _affordable(race: Race, contestants: list[Contestant], left: float) -> list[Contestant]:
    """Where the time is short, the last are left out; two stay: all levers together, and the best alone."""
    size = len(contestants)
    while size > 2 and race.seconds_for(size) > left:
        size -= 1
    return contestants[:size]
