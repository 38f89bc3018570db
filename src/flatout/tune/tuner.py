"""The stages of `flatout tune`: scout, bounds, levers, combination, confirmation, patch.

Every stage is a race against two baselines in the same rounds. What is claimed in the end was measured in fresh
processes after the levers had been chosen: the best of many looks better than it is.
"""

from __future__ import annotations

import itertools
import os
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from flatout.cures import find
from flatout.cures import levers as all_levers
from flatout.environment import cgroup
from flatout.measure.processors import STARVED
from flatout.measure.race import Rules, TimeLimit
from flatout.model.case import Case, Interval, Note, Trial
from flatout.model.errors import FlatoutError
from flatout.model.evidence.outcomes import LeverSkipped
from flatout.model.levers import parse, shown
from flatout.process.memory import resident_bytes
from flatout.process.watchdog import Watchdog
from flatout.report.progress import Progress
from flatout.trial import launcher, patch
from flatout.trial.child_process import Launch
from flatout.trial.fork_servers import ForkServers
from flatout.tune import plan
from flatout.tune.conclusions import FEWEST_STEPS, NO_TIME, best_of, holds, hurts, keeps_the_numbers, ratio, verdict_of
from flatout.tune.contestant import Contestant
from flatout.tune.journal import Journal
from flatout.tune.race import Race
from flatout.tune.request import TuneRequest
from flatout.tune.scout import ended_by_itself, imports_of, ranked, scout
from flatout.tune.starter import Starter
from flatout.tune.trials import Trials
from flatout.tune.variants import patched, with_levers

BOUNDS = ("free-input", "free-compute")
BOUND_ROUNDS = 7
AGAIN_FROM = 1.25
"""A gain from which the changed program is observed anew: other levers may pay now."""
AGAIN_UNTIL = 0.4
"""Of the budget: when that is spent, there is no time for it."""
EXPLORING = 0.6
"""Share of the time for trying; the rest is for confirming what has won, and for the patch."""
CONFIRMING_SECONDS, PATCH_SECONDS = 40.0, 30.0
"""What the confirmation and the patch get at least, starts included."""
CLOSING_SECONDS = 10.0
"""Kept back where nothing is ahead, so that nothing will have to be confirmed."""
MOST_COMBINATIONS = 4


class Tuner:
    def __init__(self, request: TuneRequest, directory: Path, progress: Progress) -> None:
        self.request = request
        self.directory = directory
        self.progress = progress
        self.journal = Journal(directory)
        self.trials = Trials(self.journal, progress, directory)
        self.watchdog = Watchdog()
        command = launcher.command_for(request.program, request.arguments, request.module)
        compiled = directory / "compiled"
        module = request.program if request.module else None
        self.launch = Launch(tuple(command), module=module, compiled=str(compiled))
        self.fork_servers = ForkServers(self.launch.command, self.watchdog, directory, compiled)
        self.began = time.monotonic()
        self.end = self.began + request.budget
        self.deadline = self.began + EXPLORING * request.budget
        self.case: Case | None = None
        self.races: list[Race] = []
        self.notes: list[Note] = []
        self.problem = ""
        """Why nothing could be tried, where that is so."""

    def run(self) -> Case:
        """Whatever interrupts it, what has been found so far becomes the case."""
        try:
            self._tune()
            self.journal.finish()
        except KeyboardInterrupt:
            self.problem = "Interrupted before anything was found."
            self.notes.append(Note("warning", "Interrupted: these are partial results; --resume continues."))
        finally:
            for race in self.races:
                race.close()
            self.fork_servers.close()
            self.watchdog.close()
        return self._conclude()

    def _tune(self) -> None:
        case = self._scouted()
        if case.steps is None or case.steps.count < FEWEST_STEPS:
            return
        self.launch = ranked(self.launch, case)
        if self.launch.least_step == "input" and self.launch.not_steps:
            text = "A step of the trials is a batch of the input, however many calls it takes."
            self.notes.append(Note("info", text))
        self.fork_servers.prepare(*imports_of(self.directory / "scout-1"))
        limits = [] if self.request.levers else [self._contestant((name,)) for name in self._open_bounds()]
        race = self._race(self.launch, limits)
        bounds = self._bounds(race, limits)
        winners = self._levers(race, case, (), bounds)
        race.close()
        winners += self._again(winners)
        if winners:
            self._combine(winners)

    # ── the stages ───────────────────────────────────────────────────────────────────────────────────────────

    def _scouted(self) -> Case:
        if self.journal.scouted is None:
            self.journal.begin(self.launch.command, os.getcwd())
            self.progress.phase("observing the program as it is")
            self.fork_servers.open()
            found = scout(self.launch, self._new_directory("scout"), self.watchdog, self.deadline, self.progress.tick)
            self.journal.keep_scouted(found)
        self.case = self.journal.scouted
        assert self.case is not None
        return self.case

    def _bounds(self, race: Race, limits: Sequence[Contestant]) -> dict[str, Interval]:
        """What a free input and a free computation would give: which side is worth curing at all."""
        if limits:
            self.progress.phase("bounds: what would a free input give, and a free computation?")
            race.run(limits, Rules(rounds=BOUND_ROUNDS), TimeLimit(self.deadline))
            self.trials.keep_all(race, limits, "bound")
        known = [self.journal.known("bound", (name,)) for name in BOUNDS]
        return {trial.levers[0]: trial.speedup for trial in known if trial is not None and trial.speedup is not None}

    def _levers(self, race: Race, case: Case, base: tuple[str, ...], bounds: dict[str, Interval]) -> list[str]:
        """One lever after the other on top of `base`; the winners, best first."""
        planned = plan.make(case, self.request.levers, self.request.allow, self._excluded(base), bounds)
        for name, why in planned.skipped:
            self.trials.skipped.setdefault(name, why)
        untried = [text for text in planned.levers if not self.journal.known("single", (*base, text))]
        if untried and not any(one.active for one in race.baselines):
            return []
        at_once = _alive_at_once(race)
        # Those that a finding suggests run first: if the time runs out, it does so on the others.
        suggested = [text for text in untried if plan.expected(find(_name(text)), case) > 0]
        others = [text for text in untried if text not in suggested]
        for group in (*_cut(suggested, at_once), *_cut(others, at_once)):
            self._try(race, case, base, group, len(planned.levers))
        return self._winners(planned.levers, base)

    def _excluded(self, base: tuple[str, ...]) -> set[str]:
        """Levers not to plan with: as asked for; those in the program already; with these, what was slower before."""
        without = {*self.request.without, *map(_name, base)}
        if base:
            singles = (trial for trial in self.trials.found if trial.stage == "single")
            without |= {_name(trial.levers[0]) for trial in singles if hurts(trial)}
        return without

    def _try(self, race: Race, case: Case, base: tuple[str, ...], levers: list[str], comparisons: int) -> None:
        """These levers side by side, each on top of `base`."""
        if time.monotonic() > self.deadline:
            self.trials.skip(levers, f"{NO_TIME}: a larger --budget tries it")
            return
        contestants = [self._contestant((*base, text)) for text in self._affordable(race, levers, case)]
        if not contestants:
            return
        self.progress.phase(f"trying {', '.join(one.title for one in contestants)}")
        race.starter.start(contestants)
        to_confirm = self.trials.any_single_won or bool(self.trials.nominated)
        last = self.deadline if to_confirm else self.end - CLOSING_SECONDS
        race.run(contestants, Rules(comparisons=comparisons), TimeLimit(self.deadline, last=last))
        self.trials.keep_all(race, contestants, "single")

    def _winners(self, levers: Sequence[str], base: tuple[str, ...]) -> list[str]:
        gains: dict[str, float] = {}
        for text in filter(self._combinable, levers):
            tried = (*base, text)
            trial = self.journal.known("single", tried)
            if trial is not None and trial.status == "won":
                gains[text] = ratio(trial)
            elif tried in self.trials.nominated:
                gains[text] = self.trials.nominated[tried]
        return sorted(gains, key=lambda text: -gains[text])

    def _again(self, winners: list[str]) -> list[str]:
        """Observes the program with the winners in it: what costs most now, and do other levers pay?"""
        best = self.journal.known("single", (winners[0],)) if winners else None
        gained = ratio(best) if best is not None else 1.0  # what was only nominated is confirmed first
        spent = (time.monotonic() - self.began) / self.request.budget
        if not winners or self.request.levers or gained < AGAIN_FROM or spent > AGAIN_UNTIL:
            return []
        base = plan.combinations(winners)[-1]
        self.progress.phase(f"observing the program again, with {shown(base)}")
        directory, launch = self._new_directory("scout-again"), self._contestant(base).launch
        changed = scout(launch, directory, self.watchdog, self.deadline, self.progress.tick)
        if changed.steps is None or changed.steps.count < FEWEST_STEPS:
            return []
        race = self._race(ranked(launch, changed))
        found = self._levers(race, changed, base, {})
        race.close()
        return found

    def _combine(self, winners: list[str]) -> None:
        """The winners together, confirmed in fresh processes; then the same as an edit of the source."""
        together = plan.combinations(winners)[-MOST_COMBINATIONS:]
        self.progress.phase("confirming in fresh processes")
        # Nothing is claimed without its confirmation: it gets some time even where the budget was very small.
        self.deadline = max(self.end - PATCH_SECONDS, time.monotonic() + CONFIRMING_SECONDS)
        contestants = [self._contestant(levers) for levers in together if not self.journal.known("combination", levers)]
        race = self._race(self.launch, contestants)
        if contestants:
            race.run(contestants, Rules("narrow", comparisons=len(contestants)), TimeLimit(self.deadline))
            self.trials.keep_all(race, contestants, "combination")
        best = best_of(self.trials.found)
        if best is not None:
            self._try_patch(race, best)

    def _try_patch(self, race: Race, best: Trial) -> None:
        assert self.case is not None
        try:
            made = patch.make(self.case, best.levers)
        except FlatoutError as error:
            self.notes.append(Note("warning", f"No patch: {error}"))
            return
        if not made.changes:
            return
        one = patched(self.launch, made, best.levers, self.directory / "patched")
        if one is None:
            self.notes.append(Note("info", "No patch: the edited source of a command like this cannot be tried."))
            return
        self.progress.phase("running the patched program")
        race.starter.start([one])
        race.run([one], Rules(), TimeLimit(max(self.deadline, time.monotonic() + PATCH_SECONDS)))
        trial = self.trials.keep(race, one, "patch")
        if holds(trial, best):
            self.case = replace(self.case, patch=made.diff)
            if made.unwritten:
                text = f"{', '.join(made.unwritten)} cannot be written as an edit: `flatout run --with` injects it."
                self.notes.append(Note("info", text))
        else:
            unknown = "there was no time to try it" if trial.undecided else ""
            why = unknown or trial.note or "it did not show the same speedup with the same numbers"
            self.notes.append(Note("warning", f"The patch is withheld: {why}."))

    # ── races ────────────────────────────────────────────────────────────────────────────────────────────────

    def _race(self, launch: Launch, contestants: Sequence[Contestant] = ()) -> Race:
        """A race with two baselines, which are started, and with them these contestants."""
        assert self.case is not None
        baselines = [Contestant(launch, "as it is"), Contestant(launch, "as it is, again")]
        starter = Starter(
            self._new_directory("race"), self.watchdog, self.fork_servers, _memory_limit(self.case), self.progress.say
        )
        seen_whole = self.case.steps is not None and ended_by_itself(self.directory / "scout-1")
        steps = self.case.steps.count if self.case.steps is not None and seen_whole else None
        race = Race(baselines, starter, steps_of_program=steps, show=self.progress.show)
        self.races.append(race)
        self.progress.phase("starting the baselines")
        starter.start([*baselines, *contestants])
        if not any(one.active for one in baselines):
            self.problem = f"The program could not be held for trials: {baselines[0].note}."
        return race

    def _contestant(self, levers: tuple[str, ...]) -> Contestant:
        assert self.case is not None
        return with_levers(self.launch, self.case, levers, self.directory / "edited")

    def _open_bounds(self) -> list[str]:
        return [name for name in BOUNDS if name in all_levers() and not self.journal.known("bound", (name,))]

    def _affordable(self, race: Race, levers: list[str], case: Case) -> list[str]:
        """Where the time is short, levers that no finding suggests are left out, the last first."""
        left = self.deadline - time.monotonic()
        kept = list(levers)
        while kept and race.seconds_for(len(kept)) > left:
            if self.request.levers or plan.expected(find(_name(kept[-1])), case) > 0:
                break
            self.trials.skip([kept.pop()], f"{NO_TIME}, and no finding suggests it: --budget 10m tries it too")
        return kept

    def _combinable(self, text: str) -> bool:
        """Another precision or another training is combined only where the user asks for it."""
        equivalence = find(_name(text)).spec.equivalence
        named = _name(text) in map(_name, self.request.levers)
        return keeps_the_numbers(equivalence) or named or equivalence in self.request.allow

    def _new_directory(self, name: str) -> Path:
        """One that nothing has been written to yet: a tune that was interrupted may have left some."""
        numbers = itertools.count(1)
        return next(path for n in numbers if not (path := self.directory / f"{name}-{n}").exists())

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────

    def _conclude(self) -> Case:
        case, trials = self.case or Case(kind="tune"), self.trials.found
        best = best_of(trials)
        skipped = (LeverSkipped(name, note=why) for name, why in sorted(self.trials.skipped.items()))
        case = replace(
            case,
            kind="tune",
            trials=tuple(trials),
            tuned=best.levers if best else (),
            evidence=(*case.evidence, *skipped),
            notes=(*case.notes, *self.notes, *_disturbed(self.races)),
            logdir="scout-1/trace" if case.logdir else None,
        )
        nothing_tried = not any(trial.stage == "single" for trial in trials)
        return replace(case, verdict=self.problem if self.problem and nothing_tried else verdict_of(case))


def _disturbed(races: Iterable[Race]) -> list[Note]:
    """A warning where something else had the processors in many of the rounds."""
    taken = [share for race in races for share in race.taken]
    starved = [share for share in taken if share >= STARVED]
    if len(starved) < STARVED * len(taken) or not starved:
        return []
    text = f"Something else had {100 * statistics.median(starved):.0f} % of the processors in {len(starved)} of "
    return [Note("warning", f"{text}{len(taken)} rounds: the intervals are wider than on a quiet machine.")]


def _cut(levers: list[str], size: int) -> list[list[str]]:
    return [levers[start : start + size] for start in range(0, len(levers), size)]


def _name(text: str) -> str:
    return parse(text)[0]


def _memory_limit(case: Case) -> int | None:
    """A trial may take as much as the program itself and half of what is free."""
    free = cgroup.memory_left()
    return (case.memory.process_peak_bytes if case.memory else 0) + free // 2 if free else None


def _alive_at_once(race: Race) -> int:
    """How many trials the free memory holds side by side."""
    child, free = race.baselines[0].child, cgroup.memory_left()
    each = max(resident_bytes(child.group) if child else 0, 1 << 29)
    return max(1, min(12, int(0.6 * free / each))) if free else 4
