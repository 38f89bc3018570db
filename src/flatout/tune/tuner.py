"""The story of `flatout tune`: scout, bounds, levers, combination, confirmation, patch.

Every stage is a race against two baselines in the same rounds. What is claimed in the end was measured in fresh
processes, after the levers had been chosen: choosing the best of many flatters it.
"""

from __future__ import annotations

import itertools
import os
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flatout import store
from flatout.cures._catalogue import catalogue, find
from flatout.environment import cgroup
from flatout.measure.processors import STARVED
from flatout.model.case import Case, Evidence, Interval, Note, Trial
from flatout.model.errors import FlatoutError
from flatout.model.levers import parse, shown
from flatout.observe.observer import PRIORITY
from flatout.process.warden import Warden
from flatout.trial import launcher
from flatout.trial.child_process import Launch
from flatout.trial.nursery import Nurseries
from flatout.tune import numbers_of, plan
from flatout.tune.contestant import Contestant
from flatout.tune.journal import Journal
from flatout.tune.judging import (
    FEWEST_STEPS,
    best_of,
    holds,
    hurts,
    judge,
    keeps_the_numbers,
    promise,
    ratio,
    verdict_of,
)
from flatout.tune.lineup import patched, with_levers
from flatout.tune.progress import Progress
from flatout.tune.race import NOTHING, PROMISING, Race
from flatout.tune.scout import ended_by_itself, imports_of, ranked, scout

BOUNDS = ("free-input", "free-compute")
BOUND_ROUNDS = 7
AGAIN_FROM = 1.25
"""A gain from which the changed program is looked at anew: other levers may pay now."""
EXPLORING = 0.6
"""Share of the time for trying; the rest is for confirming what has won, and for the patch."""
NOMINATED = 8
"""Rounds, of both baselines together, all of them faster, with which a lever goes on though its time was over."""
CONFIRMING_SECONDS, PATCH_SECONDS = 40.0, 30.0
"""What the confirmation and the patch get at least, starts included."""
CLOSING_SECONDS = 10.0
"""Kept back where nothing is ahead, so that nothing will have to be confirmed."""


@dataclass(frozen=True)
class Options:
    module: bool = False
    levers: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    budget: float = 240.0
    resume: bool = False


class Tuner:
    def __init__(
        self, program: str, arguments: Sequence[str], options: Options, directory: Path, progress: Progress
    ) -> None:
        self.options = options
        self.directory = directory
        self.progress = progress
        self.journal = Journal(directory)
        self.warden = Warden()
        self.launch = Launch(
            tuple(launcher.command_for(program, arguments, options.module)), module=program if options.module else None
        )
        self.nurseries = Nurseries(self.launch.command, self.warden, directory)
        self.began = time.monotonic()
        self.deadline = self.began + EXPLORING * options.budget
        self.case: Case | None = None
        self.trials: list[Trial] = list(self.journal.trials.values())
        self.skipped: dict[str, str] = {}
        self.nominated: dict[tuple[str, ...], float] = {}
        self.races: list[Race] = []
        self.notes: list[Note] = []
        self.trouble = ""
        """Why nothing could be tried, where that is so."""

    def run(self) -> Case:
        """Whatever interrupts it, what is known by then becomes the case."""
        try:
            self._tune()
            self.journal.finish()
        except KeyboardInterrupt:
            self.trouble = "Interrupted before anything was found out."
            self.notes.append(Note("warning", "Interrupted: what was known by then is told; --resume goes on."))
        finally:
            for race in self.races:
                race.close()
            self.nurseries.close()
            self.warden.close()
        return self._conclude()

    def _tune(self) -> None:
        if self.journal.scouted is None:
            self.journal.begin(self.launch.command, os.getcwd())
            self.progress.phase("watching the program as it is")
            self.nurseries.open()
            found = scout(self.launch, self._place("scout"), self.warden, self.deadline, self.progress.waiting)
            self.journal.keep_scouted(found)
        self.case = self.journal.scouted
        assert self.case is not None
        if self.case.steps is None or self.case.steps.count < FEWEST_STEPS:
            return
        self.launch = ranked(self.launch, self.case)
        if self.launch.priority == PRIORITY["input"] and self.launch.passing:
            self.notes.append(
                Note("info", "A step of the trials is a batch of the input, however many calls it takes.")
            )
        self.nurseries.furnish(*imports_of(self.directory / "scout-1"))
        limits = [] if self.options.levers else [self._contestant((name,)) for name in self._open_bounds()]
        first = self._race(self.launch, limits)
        bounds = self._bounds(first, limits)
        winners = self._levers(first, self.case, (), bounds)
        first.close()
        winners += self._again(winners)
        if winners:
            self._combine(winners)

    # ── the stages ───────────────────────────────────────────────────────────────────────────────────────────

    def _race(self, launch: Launch, beside: Sequence[Contestant] = ()) -> Race:
        assert self.case is not None
        baselines = [Contestant(launch, "as it is"), Contestant(launch, "as it is, again")]
        race = Race(
            self._place("race"),
            self.warden,
            baselines,
            deadline=self.deadline,
            memory_limit=_memory_limit(self.case),
            nurseries=self.nurseries,
            say=self.progress.say,
            look=self.progress.look,
        )
        if self.case.steps is not None and ended_by_itself(self.directory / "scout-1"):
            race.steps_of_program = self.case.steps.count
        self.races.append(race)
        self.progress.phase("starting the baselines")
        race.start([*baselines, *beside])
        if not any(one.running for one in baselines):
            self.trouble = f"The program could not be held for trials: {baselines[0].note}."
        return race

    def _place(self, name: str) -> Path:
        """A directory that nothing has been written to yet: a tune that was cut short may have left some."""
        numbers = itertools.count(1)
        return next(path for n in numbers if not (path := self.directory / f"{name}-{n}").exists())

    def _open_bounds(self) -> list[str]:
        return [name for name in BOUNDS if name in catalogue() and not self.journal.known("bound", (name,))]

    def _bounds(self, race: Race, limits: Sequence[Contestant]) -> dict[str, Interval]:
        """What a free input and a free computation would give: which side is worth curing at all."""
        self.progress.phase("bounds: what would a free input give, and a free computation?")
        race.run(limits, 1, BOUND_ROUNDS)
        for one in limits:
            if one.over != NOTHING:
                self._keep(race, one, "bound", 1)
        known = [self.journal.known("bound", (name,)) for name in BOUNDS]
        return {trial.levers[0]: trial.speedup for trial in known if trial is not None and trial.speedup is not None}

    def _levers(self, race: Race, case: Case, base: tuple[str, ...], bounds: dict[str, Interval]) -> list[str]:
        """One lever after the other on top of `base`; the winners, best first."""
        without = {*self.options.without, *map(_name, base)}
        if base:  # what was slower before is not tried again
            without |= {_name(trial.levers[0]) for trial in self.trials if trial.stage == "single" and hurts(trial)}
        planned = plan.make(case, self.options.levers, self.options.allow, without, bounds)
        for name, why in planned.skipped:
            self.skipped.setdefault(name, why)
        open_ones = [text for text in planned.levers if not self.journal.known("single", (*base, text))]
        if open_ones and not any(one.running for one in race.baselines):
            return []
        per_wave = _room(race)
        # Those that a finding speaks for run first: if the time runs out, it does so on the others.
        hopeful = [text for text in open_ones if plan.expected(find(_name(text)), case) > 0]
        others = [text for text in open_ones if text not in hopeful]
        for group in (*_cut(hopeful, per_wave), *_cut(others, per_wave)):
            if time.monotonic() > self.deadline:
                self.skipped.update(dict.fromkeys(map(_name, group), "no time left for it: a larger --budget tries it"))
                continue
            wave = [self._contestant((*base, text)) for text in self._affordable(race, group, case)]
            self.progress.phase(f"trying {', '.join(one.title for one in wave)}")
            race.start(wave)
            won = any(trial.stage == "single" and trial.status == "won" for trial in self.trials)
            to_confirm = won or bool(self.nominated)
            race.last = self.deadline if to_confirm else self.began + self.options.budget - CLOSING_SECONDS
            race.run(wave, len(planned.levers))
            for one in wave:
                if one.over == NOTHING:
                    self.skipped[_name(one.levers[-1])] = one.note
                else:
                    self._keep(race, one, "single", len(planned.levers))
        winners: dict[str, float] = {}
        for text in planned.levers:
            key = (*base, text)
            trial = self.journal.known("single", key)
            if trial is not None and trial.status == "won" and self._combinable(text):
                winners[text] = ratio(trial)
            elif key in self.nominated and self._combinable(text):
                winners[text] = self.nominated[key]
        return sorted(winners, key=lambda text: -winners[text])

    def _affordable(self, race: Race, levers: list[str], case: Case) -> list[str]:
        """Where the time is short, levers that no finding speaks for are left out, the last first."""
        left = self.deadline - time.monotonic()
        kept = list(levers)
        while kept and race.seconds_for(len(kept)) > left:
            name = _name(kept[-1])
            if self.options.levers or plan.expected(find(name), case) > 0:
                break
            self.skipped[name] = "no time left for it, and nothing speaks for it: --budget 10m tries it too"
            kept.pop()
        return kept

    def _combinable(self, text: str) -> bool:
        """Other precision and other training are the user's to choose, not ours to slip in."""
        equivalence = find(_name(text)).equivalence
        asked = _name(text) in {_name(named) for named in self.options.levers}
        return keeps_the_numbers(equivalence) or asked or equivalence in self.options.allow

    def _again(self, winners: list[str]) -> list[str]:
        """Looks at the program with the winners in it: what costs most now, and do other levers pay?"""
        together = plan.combinations(winners)
        best = self.journal.known("single", (winners[0],)) if winners else None
        gained = ratio(best) if best is not None else 1.0  # what was only nominated is confirmed first
        spent = (time.monotonic() - self.began) / self.options.budget
        if not winners or self.options.levers or gained < AGAIN_FROM or spent > 0.4:
            return []
        base = together[-1]
        self.progress.phase(f"watching the program again, with {shown(base)}")
        place, launch = self._place("scout-again"), self._contestant(base).launch
        changed = scout(launch, place, self.warden, self.deadline, self.progress.waiting)
        if changed.steps is None or changed.steps.count < FEWEST_STEPS:
            return []
        race = self._race(ranked(launch, changed))
        found = self._levers(race, changed, base, {})
        race.close()
        return found

    def _combine(self, winners: list[str]) -> None:
        """The winners together, confirmed in fresh processes; then the same as an edit of the source."""
        together = plan.combinations(winners)[-4:]
        self.progress.phase("confirming in fresh processes")
        # A claim without its confirmation is no claim: it gets some time even where the budget was very small.
        end = self.began + self.options.budget
        self.deadline = max(end - PATCH_SECONDS, time.monotonic() + CONFIRMING_SECONDS)
        contestants = [self._contestant(levers) for levers in together if not self.journal.known("combination", levers)]
        race = self._race(self.launch, contestants)
        race.run(contestants, len(contestants), claim=True)
        for one in contestants:
            if one.over != NOTHING:
                self._keep(race, one, "combination", len(contestants))
        best = best_of(self.trials)
        if best is not None:
            self._try_patch(race, best)

    def _try_patch(self, race: Race, best: Trial) -> None:
        from flatout.trial import patch

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
        race.deadline = max(race.deadline, time.monotonic() + PATCH_SECONDS)
        race.start([one])
        race.run([one], 1)
        trial = self._keep(race, one, "patch", 1)
        if holds(trial, best):
            self.case = replace(self.case, patch=made.diff)
            if made.unwritten:
                text = f"{', '.join(made.unwritten)} cannot be written as an edit: `flatout run --with` injects it."
                self.notes.append(Note("info", text))
        else:
            unknown = "there was no time to try it" if trial.undecided else ""
            why = unknown or trial.note or "it did not show the same speedup with the same numbers"
            self.notes.append(Note("warning", f"The patch is withheld: {why}."))

    # ── trials ───────────────────────────────────────────────────────────────────────────────────────────────

    def _contestant(self, levers: tuple[str, ...]) -> Contestant:
        assert self.case is not None
        return with_levers(self.launch, self.case, levers, self.directory / "edited")

    def _keep(self, race: Race, one: Contestant, stage: str, comparisons: int) -> Trial:
        """A finished contestant becomes a Trial: measured, checked for equal numbers, written down."""
        verdict = race.verdict(one, comparisons)
        known = verdict is not None and verdict.speedup.high != float("inf")
        few = f"about {verdict.speedup.ratio:.2f}×, in too few rounds for an interval" if verdict and not known else ""
        trial = Trial(
            levers=one.levers,
            status=one.over or "noise",  # type: ignore[arg-type]
            speedup=verdict.speedup if verdict and known else None,
            cpu=verdict.cpu if verdict and known else None,
            rounds=verdict.rounds if verdict else 0,
            equivalence=promise(one.levers),
            step_ms=one.step_ms(),
            stage=stage,
            note="; ".join(filter(None, [one.note, few, *_notes(one)])),
            memory_bytes=one.peak_bytes,
        )
        if stage != "bound" and trial.status == "won":
            self.progress.say(f"{one.title}: do the numbers agree?")
            compared = numbers_of.compare(race, one, self.directory)
            trial = judge(trial, compared)
        self.trials.append(trial)
        if not trial.undecided:  # a tune that goes on gives it another chance
            self.journal.keep(trial)
        elif len(ratios := race.ratios(one)) >= NOMINATED and min(ratios) > PROMISING and verdict is not None:
            self.nominated[one.levers] = verdict.speedup.ratio  # the confirmation is to decide
        self.progress.finished(trial)
        return trial

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────

    def _conclude(self) -> Case:
        case = self.case or Case(kind="tune")
        best = best_of(self.trials)
        evidence = tuple(Evidence("lever-skipped", name, note=why) for name, why in sorted(self.skipped.items()))
        case = replace(
            case,
            kind="tune",
            trials=tuple(self.trials),
            tuned=best.levers if best else (),
            evidence=(*case.evidence, *evidence),
            notes=(*case.notes, *self.notes, *_crowded(self.races)),
            logdir="scout-1/trace" if case.logdir else None,
        )
        nothing_tried = not any(trial.stage == "single" for trial in self.trials)
        return replace(case, verdict=self.trouble if self.trouble and nothing_tried else verdict_of(case))


def _crowded(races: Iterable[Race]) -> list[Note]:
    """A warning where something else had the processors in many of the rounds."""
    taken = [share for race in races for share in race.taken]
    starved = [share for share in taken if share >= STARVED]
    if len(starved) < STARVED * len(taken) or not starved:
        return []
    text = f"Something else had {100 * statistics.median(starved):.0f} % of the processors in {len(starved)} of "
    return [Note("warning", f"{text}{len(taken)} rounds: the intervals are wider than on a quiet machine.")]


def _notes(one: Contestant) -> list[str]:
    return [note for facts in one.report.values() for note in facts["notes"]][:4]


def _cut(levers: list[str], size: int) -> list[list[str]]:
    return [levers[start : start + size] for start in range(0, len(levers), size)]


def _name(text: str) -> str:
    return parse(text)[0]


def _memory_limit(case: Case) -> int | None:
    """A trial may take as much as the program itself and half of what is free."""
    free = cgroup.memory_left()
    return (case.memory.process_peak_bytes if case.memory else 0) + free // 2 if free else None


def _room(race: Race) -> int:
    """How many trials can live side by side in what memory is free."""
    child, free = race.baselines[0].child, cgroup.memory_left()
    each = max(child.resident_bytes() if child else 0, 1 << 29)
    return max(1, min(12, int(0.6 * free / each))) if free else 4


def new_directory(program: str) -> Path:
    return store.new_directory(f"tune-{Path(program).stem or program}")
