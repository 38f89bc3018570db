"""The story of an optimize: prepare, line up, make and check, race, claim in fresh processes, hand over."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flatout.environment.machine import cores, free_memory
from flatout.measure.race import Exit, Race, Rules, TimeLimit
from flatout.model.errors import ModelUnusable
from flatout.optimize import allowance, handover, lineup
from flatout.optimize.checks import Budget
from flatout.optimize.claiming import Claim, claim
from flatout.optimize.contestant import Contestant
from flatout.optimize.lineup import BASELINE, Candidate, Skipped
from flatout.optimize.work.workers import open_fork_server, start_worker
from flatout.optimize.workshop import JUDGE_SECONDS, KEPT_FREE, JudgeCall, Workshop
from flatout.process.fork_server import ForkServer
from flatout.process.watchdog import Watchdog
from flatout.process.worker import Worker, WorkFailed
from flatout.report.progress import Progress
from flatout.routes import catalogue
from flatout.subject.preparing import Prepared, Request
from flatout.subject.subject import Subject

PREPARE_SECONDS = 300.0
SCREENING = Rules("behind", rounds=9)
EARLY_ROUNDS = 3
"""Of each heat, however late it is: what has run so far is compared."""
SHARE_FOR_MAKING = 0.6
SHARE_FOR_RACING = 0.8
"""Of the time that is given. The rest is for the claim."""


@dataclass(frozen=True)
class Options:
    objective: str = "latency"
    max_drop: float = 0.01
    lower_is_better: bool = False
    routes: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    compare: tuple[Path, ...] = ()
    compressed: tuple[Path, ...] = ()
    """Files that `compress/` has made from the model: checked and raced like routes, and handed over if one wins."""
    exhaustive: bool = False
    budget: float | None = None
    """Seconds. None: what a model of this size needs (`allowance`)."""
    output: Path | None = None
    force: bool = False


@dataclass
class Outcome:
    """All that was found out; `telling` makes a Case of it."""

    subject: Subject
    budget: Budget
    original_metric: float | None
    notes: list[str]
    candidates: list[Candidate] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    heats: list[Race[Contestant]] = field(default_factory=list)
    claim: Claim | None = None


class Optimizer:
    def __init__(
        self, request: Request, options: Options, directory: Path, progress: Progress, prepared: Prepared | None = None
    ) -> None:
        """`prepared` is for a model in memory: it was made ready in the user's own process."""
        self.request = request
        self.options = options
        self.directory = directory
        self.progress = progress
        self.prepared = prepared
        self.began = time.monotonic()

    def run(self) -> Outcome:
        lineup.check_names(catalogue(), (*self.options.routes, *self.options.without))
        place = handover.place_for(self.options.output, self.directory, self.options.force)
        watchdog = Watchdog()
        server = open_fork_server(watchdog, self.directory / "logs" / "fork-server.txt")
        try:
            outcome, judge = self._prepare(watchdog, server)
            if self.options.budget is None:
                self._allow(outcome.subject)
            workshop = Workshop(
                outcome.subject,
                self.directory,
                watchdog,
                server,
                outcome.budget,
                judge,
                self._at(SHARE_FOR_MAKING),
                self.progress.say,
                patient=self._patient(),
            )
            contestants = self._make(outcome, workshop)
            self._race(outcome, workshop, contestants)
            self.progress.phase("measuring the best again, in fresh processes")
            outcome.claim = claim(outcome.heats, workshop, self.options, place, self._at(1.0), self.progress)
            return outcome
        finally:
            if server is not None:
                server.close()
            watchdog.close()

    def _patient(self) -> bool:
        """Whether routes count that are many times slower than the model: asked for, or wanted for their size."""
        asked = self.options.exhaustive or bool(self.options.routes)
        return asked or self.options.objective in ("size", "memory")

    def _allow(self, subject: Subject) -> None:
        self.progress.budget = allowance.seconds_for(subject)
        if self.progress.budget > allowance.LEAST:
            self.progress.say(f"a large or slow model: {self.progress.budget / 60:.0f} minutes are allowed (--budget)")

    def _at(self, share: float) -> float:
        return self.began + share * self.progress.budget

    # ── preparing ────────────────────────────────────────────────────────────────────────────────────────────

    def _prepare(self, watchdog: Watchdog, server: ForkServer | None) -> tuple[Outcome, JudgeCall | None]:
        self.progress.phase("opening the model")
        if self.prepared is not None:
            said, judge = self.prepared.summary(), self.prepared.judge
            call: JudgeCall | None = judge
        else:
            worker = start_worker(self.directory / "logs" / "prepare.txt", watchdog, server)
            try:
                said = worker.ask("prepare", PREPARE_SECONDS, request=self.request.to_json())
            except WorkFailed as error:
                raise ModelUnusable(str(error)) from None
            call = _asking(worker) if said["judged"] else None
        subject = Subject.read(Path(self.request.directory))
        metric = self.request.metric if said["judged"] else None
        budget = Budget(self.options.max_drop, metric, self.options.lower_is_better)
        return Outcome(subject, budget, said["metric"], list(said["notes"])), call

    # ── making and racing ────────────────────────────────────────────────────────────────────────────────────

    def _make(self, outcome: Outcome, workshop: Workshop) -> list[Contestant]:
        subject, routes = outcome.subject, catalogue()
        made = self.directory / "candidates"
        asked: dict[str, Any] = {"only": self.options.routes, "without": self.options.without, "cores": cores()}
        outcome.candidates, outcome.skipped = lineup.line_up(
            routes, subject, made, exhaustive=self.options.exhaustive, **asked
        )
        outcome.candidates += [lineup.given(path, routes, made, subject, cores()) for path in self.options.compare]
        for path in self.options.compressed:
            outcome.candidates += lineup.ours(path, routes, made, subject, **asked)
        self.progress.phase(f"converting and checking {len(outcome.candidates)} candidates")
        contestants = workshop.make(outcome.candidates, self._batch(subject))
        if not any(one.candidate.route.name == BASELINE for one in contestants):
            failed = next(one for one in outcome.candidates if one.route.name == BASELINE)
            raise ModelUnusable(f"The model itself does not run as a tf.function: {failed.note}")
        more = [
            Contestant(one.candidate, setting, one.batch)
            for one in contestants
            for setting in one.candidate.settings[1:]
        ]
        return [*contestants, *more]

    def _batch(self, subject: Subject) -> int:
        """At which the race is run."""
        return max(subject.batches) if self.options.objective == "throughput" else subject.batches[0]

    def _race(self, outcome: Outcome, workshop: Workshop, contestants: list[Contestant]) -> None:
        baseline = next(one for one in contestants if one.candidate.route.name == BASELINE)
        waiting = [one for one in contestants if one is not baseline]
        self.progress.phase(f"racing {len(waiting)} contestants")
        deadline = self._at(SHARE_FOR_RACING)
        while True:
            heat, waiting = _that_fit(waiting, workshop, baseline)
            race = Race([baseline], show=self.progress.show)
            outcome.heats.append(race)
            race.run(heat, SCREENING, TimeLimit(deadline, fewest_rounds=EARLY_ROUNDS))
            for one in heat:
                one.close()
            if not waiting or time.monotonic() > deadline:
                break
            baseline = _again(baseline)
            workshop.open(baseline)
        for one in waiting:
            one.leave(Exit("timeout", "there was no time left to race it: give more with --budget"))
        for race in outcome.heats:
            for one in race.baselines:
                one.close()


def _that_fit(
    waiting: Sequence[Contestant], workshop: Workshop, baseline: Contestant
) -> tuple[list[Contestant], list[Contestant]]:
    """As many as there is memory for, opened two at a time."""
    heat = [one for one in waiting if one.worker is not None]
    rest = [one for one in waiting if one.worker is None]
    step = max(1, min(cores(), 4))
    with ThreadPoolExecutor(max_workers=step) as pool:
        while rest and (free_memory() > KEPT_FREE or not heat):
            now, rest = rest[:step], rest[step:]
            list(pool.map(_opener(workshop), now))
            heat += now
    return [one for one in heat if one.active], rest


def _opener(workshop: Workshop) -> Callable[[Contestant], None]:
    def opened(one: Contestant) -> None:
        try:
            workshop.open(one)
        except WorkFailed as error:
            one.fail(error)
            return
        if reason := workshop.too_slow(one):
            one.leave(Exit("timeout", reason))

    return opened


def _again(one: Contestant) -> Contestant:
    one.close()
    return Contestant(one.candidate, one.setting, one.batch)


def _asking(worker: Worker) -> JudgeCall:
    def judge(answers: Path) -> dict[str, Any]:
        return worker.ask("judge", JUDGE_SECONDS, answers=str(answers))

    return judge
