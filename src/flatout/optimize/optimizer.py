"""The optimize workflow: prepare, select candidates, build and check them, race, claim, hand over."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flatout.environment.machine import cores, free_memory
from flatout.measure.race import Exit, Race, Rules, TimeLimit
from flatout.model.errors import InvalidOption, ModelUnusable
from flatout.optimize import artefact, other_batches, time_budget
from flatout.optimize.builder import KEPT_FREE, Accuracy, Builder, Evaluate, Processes
from flatout.optimize.candidates import BASELINE, Candidate, CandidateList, RouteChoice, Skipped
from flatout.optimize.checks import AccuracyBudget
from flatout.optimize.claim import Claim, claim_seconds, make_claim
from flatout.optimize.contestant import Contestant
from flatout.optimize.layouts import LAYOUTS
from flatout.optimize.request import OptimizeRequest
from flatout.optimize.work.workers import open_fork_server
from flatout.process.watchdog import Watchdog
from flatout.process.worker import Worker, WorkFailed
from flatout.report.progress import Progress
from flatout.routes import catalogue
from flatout.routes._kept import home
from flatout.subject import Subject
from flatout.subject.preparation import Prepared
from flatout.subject.samples import row_digests

PREPARE_SECONDS = 300.0
EVALUATE_SECONDS = 120.0
SCREENING = Rules("behind", rounds=9)
EARLY_ROUNDS = 3
"""Rounds that every race has, however late it is, so that what has run so far can be compared."""
BUILD_SHARE = 0.6
RACE_SHARE = 0.8
"""Shares of the time budget after which building and racing end. The rest is for the claim."""
CLAIM_SHARE = 0.5
"""The claim gets at most this share of the time that is left, however long it will take: without routes that were
raced, there is nothing to claim."""
BUILD_SHARE_OF_RACES = 0.7
"""Building ends by this share of the time that is left until racing has to end."""
TOO_SLOW = (
    f"Opening the model and asking it for the answers to the samples took more than {PREPARE_SECONDS:.0f} s. Give "
    "fewer samples (--samples), or run it on a machine that does nothing else."
)
FEWEST_MIXED, FAR_OFF = 4, 6.0
"""Answers mixed up so often, and by so many standard deviations worse than those: then the direction is wrong."""
OTHER_ORDER = (
    "the data came in another order when it was read again, so samples that it was made with may be among those of the "
    "check. Give data that comes in the same order each time (a seed, or a file)"
)
NOT_RACED = "there was no time left to race it: give more with --budget"
KEPT_FOR_NEXT = "interrupted before anything was raced; what was converted is kept for the next call"


@dataclass
class Outcome:
    """All results; `case.py` makes the Case of them."""

    subject: Subject
    budget: AccuracyBudget
    original_metric: float | None
    notes: list[str]
    candidates: list[Candidate] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    heats: list[Race[Contestant]] = field(default_factory=list)
    """Races of as many contestants as fit into memory at a time."""
    claim: Claim | None = None
    interrupted: bool = False
    """By Ctrl-C, once something was raced: nothing is claimed, and what was measured is shown."""


class Optimizer:
    def __init__(
        self, request: OptimizeRequest, directory: Path, progress: Progress, prepared: Prepared | None = None
    ) -> None:
        """`prepared`: the subject of a model in memory, which was prepared in the user's own process."""
        self.request = request
        self.directory = directory
        self.progress = progress
        self.prepared = prepared
        self.choice = RouteChoice(
            request.routes,
            request.without,
            request.exhaustive,
            LAYOUTS[request.layout] if request.layout is not None else None,
        )
        self.began = time.monotonic()

    def run(self) -> Outcome:
        self.choice.check_names(catalogue())
        output = artefact.output_directory(self.request.output, self.directory, self.request.force)
        watchdog = Watchdog()
        fork_server = open_fork_server(watchdog, self.directory / "logs" / "fork-server.txt")
        try:
            processes = Processes(watchdog, fork_server, str(home()) if self.request.cache else "")
            outcome, evaluate = self._prepare(processes)
            if self.request.seconds is None:
                self._extend_time_budget(outcome.subject)
            builder = Builder(
                outcome.subject,
                self.directory,
                processes,
                Accuracy(outcome.budget, evaluate),
                self._time_at(BUILD_SHARE),
                self.progress.say,
                self.request.accepts_slow_routes,
            )
            try:
                contestants = self._build(outcome, builder)
                self._race(outcome, builder, contestants)
                self.progress.phase("measuring the best again, in fresh processes")
                end = self._time_at(1.0)
                outcome.claim = make_claim(outcome.heats, builder, self.request, output, end, self.progress)
            except KeyboardInterrupt:
                if not outcome.heats:
                    self.progress.say(KEPT_FOR_NEXT)
                    raise
                outcome.interrupted = True
            return outcome
        finally:
            if fork_server is not None:
                fork_server.close()
            watchdog.close()

    def _extend_time_budget(self, subject: Subject) -> None:
        self.progress.budget = time_budget.seconds_for(subject)
        if self.progress.budget > time_budget.MIN_SECONDS:
            minutes = self.progress.budget / 60
            self.progress.say(f"a large or slow model: the time budget is {minutes:.0f} minutes (--budget)")

    def _races_end(self, builder: Builder) -> float:
        """When racing has to end: what a claim takes at least is known by how long processes take to open."""
        now, end = time.monotonic(), self._time_at(1.0)
        needed = claim_seconds(builder.open_seconds, finalists=1, groups=1)
        needed += (len(builder.subject.batches) - 1) * other_batches.seconds(builder.open_seconds)
        return min(self._time_at(RACE_SHARE), max(end - needed, now + CLAIM_SHARE * (end - now)))

    def _time_at(self, share: float) -> float:
        """When this share of the time budget is used up."""
        return self.began + share * self.progress.budget

    def _prepare(self, processes: Processes) -> tuple[Outcome, Evaluate | None]:
        self.progress.phase("opening the model")
        evaluate: Evaluate | None
        directory = self.directory / "subject"
        if self.prepared is not None:
            summary, evaluate = self.prepared.summary(), _evaluate_here(self.prepared.evaluator)
        else:
            worker = processes.worker(self.directory / "logs" / "prepare.txt")
            try:
                request = self.request.subject_request(directory).to_json()
                summary = worker.ask("prepare", PREPARE_SECONDS, request=request)
            except WorkFailed as error:
                raise ModelUnusable(TOO_SLOW if error.how == "timeout" else str(error)) from None
            evaluate = _evaluate_in(worker) if summary["judged"] else None
        budget = self.request.accuracy_budget(self.request.metric if summary["judged"] else None)
        budget = replace(budget, first_output_only=bool(summary["first_output_only"]))
        if summary["judged"] and self.request.lower_is_better is None:
            expect_direction(budget, float(summary["metric"]), summary["mixed_up"])
        return Outcome(Subject.read(directory), budget, summary["metric"], list(summary["notes"])), evaluate

    def _build(self, outcome: Outcome, builder: Builder) -> list[Contestant]:
        subject = outcome.subject
        source = CandidateList(catalogue(), subject, self.directory / "candidates", cores())
        outcome.candidates, outcome.skipped = source.from_routes(self.choice)
        outcome.candidates += [source.from_comparison_file(path) for path in self.request.compare]
        if not _same_order(self.request.compressed_order, subject):
            outcome.skipped += [Skipped(path.name, OTHER_ORDER) for path in self.request.compressed]
            outcome.notes.append(f"What --compress made is not raced: {OTHER_ORDER}.")
        else:
            for path in self.request.compressed:
                outcome.candidates += source.from_compressed_file(path, self.choice)
        self.progress.phase(f"converting and checking {len(outcome.candidates)} candidates")
        baseline = [one for one in outcome.candidates if one.route.name == BASELINE and one.given is None]
        contestants = builder.build(baseline, self._race_batch(subject))
        if not contestants:
            raise ModelUnusable(f"The model itself does not run as a tf.function: {baseline[0].note}")
        began, races_end = time.monotonic(), self._races_end(builder)
        builder.deadline = min(self._time_at(BUILD_SHARE), began + BUILD_SHARE_OF_RACES * (races_end - began))
        others = [one for one in outcome.candidates if one not in baseline]
        contestants += builder.build(others, self._race_batch(subject))
        other_settings = [
            Contestant(one.candidate, setting, one.batch)
            for one in contestants
            for setting in one.candidate.settings[1:]
        ]
        return [*contestants, *other_settings]

    def _race_batch(self, subject: Subject) -> int:
        return max(subject.batches) if self.request.objective == "throughput" else subject.batches[0]

    def _race(self, outcome: Outcome, builder: Builder, contestants: list[Contestant]) -> None:
        baseline = next(one for one in contestants if one.candidate.route.name == BASELINE)
        waiting = [one for one in contestants if one is not baseline]
        self.progress.phase(f"racing {len(waiting)} contestants")
        deadline = self._races_end(builder)
        while True:
            heat, waiting = _open_while_memory_lasts(waiting, builder)
            race = Race([baseline], show=self.progress.show)
            outcome.heats.append(race)
            race.run(heat, SCREENING, TimeLimit(deadline, fewest_rounds=EARLY_ROUNDS))
            for one in heat:
                one.close()
            if not waiting or time.monotonic() > deadline:
                break
            baseline.close()
            baseline = Contestant(baseline.candidate, baseline.setting, baseline.batch)
            builder.open(baseline)
        for one in waiting:
            one.leave(Exit("timeout", NOT_RACED))
        for race in outcome.heats:
            for one in race.baselines:
                one.close()


def _same_order(order: Sequence[str], subject: Subject) -> bool:
    """Whether the compression was given the same samples for calibration, so that it has seen none of the others."""
    if not order:
        return True
    now = row_digests(subject.samples("calibration"), len(order))
    return list(order[: len(now)]) == now


def expect_direction(budget: AccuracyBudget, value: float, mixed_up: Sequence[float]) -> None:
    """Refuse a direction that was guessed by the name of the metric, where the model would be far better if it had
    answered other samples. `mixed_up`: the metric of its answers given to others."""
    if len(mixed_up) < FEWEST_MIXED:
        return
    middle, spread = statistics.fmean(mixed_up), statistics.stdev(mixed_up)
    if budget.drop(value, middle) <= FAR_OFF * max(spread, 1e-6 * abs(value)):
        return
    guessed, other = ("lower", "higher") if budget.lower_is_better else ("higher", "lower")
    raise InvalidOption(
        f"{budget.metric} of the model is {value:.4g}, and {middle:.4g} where its answers are given to other samples. "
        f"By its name {guessed} would be better; by these numbers {other} is. Say --{other}-is-better, or "
        f"--{guessed}-is-better if that is meant."
    )


def _open_while_memory_lasts(
    waiting: Sequence[Contestant], builder: Builder
) -> tuple[list[Contestant], list[Contestant]]:
    """Contestants for one race, a few opened at a time while there is free memory; and those that wait for the next."""
    heat = [one for one in waiting if one.worker is not None]
    rest = [one for one in waiting if one.worker is None]
    step = max(1, min(cores(), 4))
    with ThreadPoolExecutor(max_workers=step) as pool:
        while rest and (free_memory() > KEPT_FREE or not heat):
            now, rest = rest[:step], rest[step:]
            list(pool.map(lambda one: _open(one, builder), now))
            heat += now
    return [one for one in heat if one.active], rest


def _open(one: Contestant, builder: Builder) -> None:
    try:
        builder.open(one)
    except WorkFailed as error:
        one.fail(error)
        _drop(one, "timeout" if error.how == "timeout" else "failed", f"run: {error}")
        return
    if reason := builder.too_slow(one):
        one.leave(Exit("timeout", reason))
        _drop(one, "timeout", reason)


def _drop(one: Contestant, over: str, note: str) -> None:
    """Of a setting that is not the first one, nothing follows for the others."""
    if one.setting == one.candidate.settings[0]:
        one.candidate.drop(over, note)


def _evaluate_here(evaluator: Evaluate | None) -> Evaluate | None:
    """The metric of a model in memory, in the user's own process: an exception is that of one candidate."""
    if evaluator is None:
        return None

    def evaluate(answers: Path, groups: int) -> dict[str, Any]:
        try:
            return evaluator(answers, groups)
        except Exception as error:
            text = " ".join(str(error).split())[:300]
            raise WorkFailed("failed", f"the metric failed: {type(error).__name__}: {text}") from error

    return evaluate


def _evaluate_in(worker: Worker) -> Evaluate:
    def evaluate(answers: Path, groups: int) -> dict[str, Any]:
        return worker.ask("evaluate", EVALUATE_SECONDS * (1 + bool(groups)), answers=str(answers), groups=groups)

    return evaluate
