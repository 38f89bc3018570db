"""The trials of a tune so far: a contestant that has left its race becomes a `Trial`, checked and written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from flatout.measure.race.comparison import ratios
from flatout.measure.race.rules import PROMISING
from flatout.model.case import Trial
from flatout.model.levers import parse
from flatout.model.vocabulary import TrialStage
from flatout.report import words
from flatout.report.progress import Progress
from flatout.tune import parity
from flatout.tune.clock import Clock
from flatout.tune.conclusions import KEPT, is_open, judge, promise, ratio
from flatout.tune.contestant import Contestant
from flatout.tune.journal import Journal
from flatout.tune.plan import excluded
from flatout.tune.race import Race

NOMINATED = ((8, PROMISING), (4, 1.5), (2, 3.0))
"""Ratios, of both baselines together, and what all of them exceed: with that a lever goes on to the confirmation though
its race ran out of time. The larger the gain, the fewer rounds show that it is worth confirming."""

LEAST_SECONDS = 60.0
"""For each run that is only compared, where the time is nearly up."""


@dataclass
class Trials:
    journal: Journal
    progress: Progress
    directory: Path
    clock: Clock
    found: list[Trial] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """Levers that were not tried, and why."""
    nominated: dict[tuple[str, ...], float] = field(default_factory=dict)
    """Levers that looked good when the time was up, with their ratio."""
    promising: dict[tuple[str, ...], float] = field(default_factory=dict)
    """Those that were faster in each of too few rounds: worth confirming where nothing else is."""

    def __post_init__(self) -> None:
        self.found += self.journal.trials.values()

    @property
    def any_single_won(self) -> bool:
        return any(trial.stage in ("single", "at-once") and trial.status == "won" for trial in self.found)

    def skip(self, levers: Sequence[str], why: str) -> None:
        self.skipped.update({parse(text)[0]: why for text in levers})

    def replace(self, old: Trial, new: Trial) -> None:
        """More was learned of a trial."""
        self.found[self.found.index(old)] = new
        if not is_open(new):  # a resumed tune tries it again
            self.journal.keep(new)

    def keep_all(self, race: Race, contestants: Sequence[Contestant], stage: TrialStage, *, check: bool = True) -> None:
        accepted: list[str] = []
        for one in sorted(contestants, key=lambda one: -(race.verdict(one).so_far or 0.0)):
            late = not one.unchanged and not one.broken and one.idle()
            if not one.unchanged and not late:
                # What excludes a faster lever that keeps the numbers is not combined with it: comparing it can wait.
                wanted = check and not (stage == "single" and excluded(one.levers[-1], accepted))
                if self.keep(race, one, stage, check=wanted).status == "won":
                    accepted.append(one.levers[-1])
            elif stage == "single":
                self.skip(one.levers[-1:], one.why_idle() if late else one.note)

    def keep(self, race: Race, one: Contestant, stage: TrialStage, *, check: bool = True) -> Trial:
        """`check`: whether a win has to keep the numbers from here on; otherwise `check` is called before a claim."""
        trial = self._trial(race, one, stage)
        if check and stage != "bound" and trial.status == "won":
            trial = self._checked(race, one, trial, over_seeds=not self._is_covered(trial))
        self._enter(trial)
        if trial.undecided:
            self._look_ahead(one.levers, ratios(race.baselines, one), race.verdict(one).so_far or 1.0)
        self.progress.finished(trial)
        return trial

    def take_over(self, trial: Trial, nominated: float | None, promising: float | None, machine: str) -> None:
        """A trial of another machine, with the ratios that it has among those that are worth confirming."""
        self._enter(trial)
        for ahead, gain in ((self.nominated, nominated), (self.promising, promising)):
            if gain is not None:
                ahead[trial.levers] = gain
        self.progress.finished(trial, machine)

    def _enter(self, trial: Trial) -> None:
        self.found = [one for one in self.found if (one.stage, one.levers) != (trial.stage, trial.levers)]
        self.found.append(trial)
        if not is_open(trial):  # a resumed tune tries it again
            self.journal.keep(trial)

    def check(self, race: Race, one: Contestant, trial: Trial) -> Trial:
        """The trial with its numbers compared, in the place of what was kept of it."""
        found = self._checked(race, one, trial)
        self.replace(trial, found)
        self.progress.finished(found)
        return found

    def waiting(self, levers: Sequence[str]) -> list[Trial]:
        """Of these levers, the trials alone whose numbers nobody needed to know yet."""
        return [
            trial
            for trial in self.found
            if (trial.stage, trial.status, trial.parity) == ("single", "won", "") and trial.levers[-1] in levers
        ]

    def _is_covered(self, trial: Trial) -> bool:
        """Whether a faster lever that keeps the numbers is in hand. This one may be in the claim beside it or not at
        all: the claim is compared as a whole, so what takes minutes can wait."""
        others = (one for one in self.found if (one.stage, one.upon) == ("single", trial.upon))
        return trial.stage == "single" and any(
            one.status == "won" and one.parity in KEPT and ratio(one) >= ratio(trial)
            for one in others
            if one.levers != trial.levers
        )

    def _checked(self, race: Race, one: Contestant, trial: Trial, *, over_seeds: bool = True) -> Trial:
        name = words.change_here(one.levers)
        self.progress.say(f"{name}: are the results the same?")
        seconds = min(parity.APART_SECONDS, max(self.clock.left() / 2, LEAST_SECONDS))
        found = parity.compare(race.baselines, one, race.starter, self.directory, seconds, over_seeds=over_seeds)
        notes = [part for part in trial.note.split("; ") if part and part != parity.WAITS.sentence]
        if found is not parity.WAITS:
            return judge(replace(trial, note="; ".join(notes)), found)
        self.progress.say(f"{name}: {found.sentence}")
        return replace(trial, note="; ".join([*notes, found.sentence]))

    def _look_ahead(self, levers: tuple[str, ...], seen: Sequence[float], so_far: float) -> None:
        if _is_nominated(seen):
            self.nominated[levers] = so_far
        elif seen and min(seen) > PROMISING:
            self.promising[levers] = so_far

    def _trial(self, race: Race, one: Contestant, stage: TrialStage) -> Trial:
        verdict = race.verdict(one)
        too_few = verdict.so_far is not None and verdict.speedup is None
        few = f"about {verdict.so_far:.2f}×, in too few rounds for an interval" if too_few else ""
        reported = [note for facts in one.report.values() for note in facts.notes][:4]
        return Trial(
            levers=one.levers,
            status=verdict.status,
            speedup=verdict.speedup,
            cpu=verdict.cpu,
            rounds=verdict.rounds,
            equivalence=promise(one.levers),
            step_ms=one.step_ms(),
            stage=stage,
            note="; ".join(filter(None, [verdict.note, few, *reported])),
            memory_bytes=one.peak_bytes,
        )


def _is_nominated(seen: Sequence[float]) -> bool:
    return any(len(seen) >= count and min(seen) > least for count, least in NOMINATED)
