"""Builds candidates, a few at a time: converts, inspects, opens in a fresh process, and checks them.

Routes of one runtime share a conversion process one after the other, which saves their imports. A conversion that
crashes, hangs or takes too much memory costs that process; the next one starts a new one. Nothing is timed meanwhile.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flatout.environment.machine import cores, free_memory
from flatout.measure.drop import GROUPS
from flatout.measure.race.rules import HOPELESS, LONG_UNIT_SECONDS
from flatout.optimize import checks, foreign
from flatout.optimize.candidates import BASELINE, Candidate
from flatout.optimize.checks import AccuracyBudget, CheckResult
from flatout.optimize.contestant import ANSWER_SECONDS, FEWEST, SCREENED, Contestant
from flatout.optimize.work.workers import start_worker
from flatout.process.fork_server import ForkServer
from flatout.process.watchdog import Watchdog
from flatout.process.worker import Worker, WorkFailed
from flatout.routes._route import Contents, End, Route
from flatout.routes._split import Split
from flatout.subject import Array, Subject, write_arrays

CONVERT_SECONDS = 240.0
CONVERT_SHARE = 0.6
"""A conversion may take this share of the time that is left for building: others come after it."""
LEAST_CONVERT_SECONDS = 10.0
CONVERSION = "conversion: "
FAR_BEHIND = 5.0
"""A runtime whose float32 route takes so many times as long as the fastest: its other routes are not tried."""
INSPECT_SECONDS = 60.0
STRICT_SECONDS = 45.0
STRICT_MIN_SAMPLES = 128
ALL_SAMPLES = 1 << 40
CHANCE_SAMPLES = 3
"""When screening on few samples, this many may be wrong beyond what the accuracy budget allows."""
SHARE_OF_MEMORY = 0.7
KEPT_FREE = 2 << 30
"""Contestants stay open for the race only while this much memory is free."""
OUT_OF_TIME = "there was no time left to try it: give more with --budget"

Evaluate = Callable[[Path, int], dict[str, Any]]
"""Takes a file of answers, returns `metric` of these answers and of the `original`'s; and both `without` each of so
many groups of samples."""


@dataclass(frozen=True)
class Processes:
    """Where worker processes come from."""

    watchdog: Watchdog
    fork_server: ForkServer | None = None
    kept: str = ""
    """The directory of conversions of earlier calls; empty: everything is converted."""

    def worker(self, log: Path, with_tensorflow: bool = True) -> Worker:
        return start_worker(log, self.watchdog, self.fork_server if with_tensorflow else None)


@dataclass(frozen=True)
class Accuracy:
    """How much worse than the original an artefact may be, and how the user's metric is evaluated, if there is one."""

    budget: AccuracyBudget
    evaluate: Evaluate | None = None


class Builder:
    def __init__(
        self,
        subject: Subject,
        directory: Path,
        processes: Processes,
        accuracy: Accuracy,
        deadline: float,
        say: Callable[[str], None] = lambda text: None,
        accept_slow: bool = False,
    ) -> None:
        """`accept_slow`: also check and race what is many times slower than the model itself."""
        self.subject = subject
        self.directory = directory
        self.processes = processes
        self.accuracy = accuracy
        self.deadline = deadline
        self.say = say
        self.accept_slow = accept_slow
        self.memory_limit = int(SHARE_OF_MEMORY * free_memory())
        self.open_seconds = 0.0
        """The longest that a contestant took to open, its process included."""
        self._evaluation = threading.Lock()
        self._numbers = itertools.count(1)
        self._workers: list[Worker] = []
        self._converters: dict[str, Worker] = {}
        """By family: routes of one runtime share a process, which saves their imports."""
        self._warm_ms: dict[str, float] = {}
        """By family: a call of its float32 route right after opening."""
        self._baseline_ms: float | None = None

    def build(self, candidates: Sequence[Candidate], batch: int) -> list[Contestant]:
        """Contestants for the candidates that passed, with their first setting. The others have a `note` why not.

        In waves, in case time runs short: what TensorFlow itself offers and the float32 route of each runtime; then the
        others, those of the fastest runtime first; then what is only for comparison.
        """
        contestants: list[Contestant] = []
        try:
            for number in sorted({_wave(candidate) for candidate in candidates}):
                wave = [candidate for candidate in candidates if _wave(candidate) == number]
                contestants += self._build_wave(wave, candidates, batch)
        finally:
            for worker in self._converters.values():
                worker.end()
            self._converters.clear()
        return contestants

    def _build_wave(self, wave: Sequence[Candidate], everyone: Sequence[Candidate], batch: int) -> list[Contestant]:
        families: dict[str, list[Candidate]] = {}
        for candidate in sorted(wave, key=self._promise):
            if reason := self._useless(candidate, everyone):
                candidate.drop("needless", reason)
                continue
            family = candidate.route.name if candidate.route.name == BASELINE else candidate.route.family
            families.setdefault(family, []).append(candidate)
        with ThreadPoolExecutor(max_workers=max(1, min(cores(), 4))) as pool:
            built = pool.map(lambda family: self._build_family(family, batch), families.values())
            try:
                return [one for members in built for one in members]
            except KeyboardInterrupt:
                self.stop()
                raise

    def _promise(self, candidate: Candidate) -> tuple[int, bool, float]:
        """Sort key: of loops, XLA makes the most."""
        compiled = self.subject.recurrent and candidate.route.name.startswith("tf-xla")
        return _urgency(candidate), not compiled, self._warm_ms.get(candidate.route.family, 0.0)

    def _useless(self, candidate: Candidate, everyone: Sequence[Candidate]) -> str:
        """Why a variant of a runtime cannot pay, by what its float32 route has shown; empty if it can."""
        route = candidate.route
        if self.accept_slow or candidate.given or route.precision == "float32" or not route.packages:
            return ""
        plain = [one for one in everyone if one.route.family == route.family and one.route.precision == "float32"]
        plain = [one for one in plain if not one.given]
        if any(one.over == "failed" and one.note.startswith(CONVERSION) for one in plain):
            return f"{plain[0].name} cannot be converted, and this is made of it"
        mine, best = self._warm_ms.get(route.family), min(self._warm_ms.values(), default=0.0)
        if mine is None or mine < FAR_BEHIND * best:
            return ""
        return f"{plain[0].name} takes {mine / best:.0f} times as long as the fastest: fewer bits will not make it up"

    def stop(self) -> None:
        """Give up everything that is under way."""
        self.deadline = 0.0
        for worker in list(self._workers):
            worker.end()

    def _build_family(self, candidates: Sequence[Candidate], batch: int) -> list[Contestant]:
        contestants = []
        for candidate in candidates:
            if time.monotonic() > self.deadline and not (candidate.route.name == BASELINE and self.deadline):
                candidate.drop("timeout", OUT_OF_TIME)
                continue
            worker = self._converter(candidate.route.family)
            if self._convert(candidate, worker) and self._inspect(candidate, worker):
                contestants += self._open_and_check(candidate, batch)
            if self.deadline:  # else all is given up, and how this one ended says nothing
                self.say(f"{candidate.name}: {candidate.note if candidate.over else 'ready'}")
        return contestants

    def _converter(self, family: str) -> Worker:
        """The process that converts for this runtime; a new one where the last one is gone, or took much memory."""
        worker = self._converters.get(family)
        if worker is not None and worker.alive and free_memory() < KEPT_FREE:
            worker.end()
        if worker is None or not worker.alive:
            worker = self._converters[family] = self.processes.worker(self._log("convert"))
            self._workers.append(worker)
        return worker

    def _convert(self, candidate: Candidate, worker: Worker) -> bool:
        given = candidate.given
        source = (
            {"given": str(given.resolve())}
            if given is not None
            else {
                "subject": str(self.subject.directory),
                "kept": self.processes.kept,
            }
        )
        try:
            candidate.directory.mkdir(parents=True)
            answer = worker.ask(
                "convert" if given is None else "import_file",
                min(CONVERT_SECONDS, max(CONVERT_SHARE * (self.deadline - time.monotonic()), LEAST_CONVERT_SECONDS)),
                self.memory_limit,
                route=candidate.route.name,
                directory=str(candidate.directory),
                **source,
            )
            candidate.convert_ms = 1e3 * answer["seconds"]
            if given is not None and not candidate.ours:
                ends = [[End(**{**end, "shape": tuple(end["shape"])}) for end in some] for some in answer["ends"]]
                candidate.orders = foreign.orders(self.subject.inputs, self.subject.outputs, (ends[0], ends[1]))
            candidate.reused = bool(answer.get("reused"))
        except WorkFailed as error:
            self._drop_unconverted(candidate, error)
            return False
        return True

    def _inspect(self, candidate: Candidate, worker: Worker) -> bool:
        try:
            answer = worker.ask(
                "inspect",
                INSPECT_SECONDS,
                self.memory_limit,
                route=candidate.route.name,
                directory=str(candidate.directory),
            )
        except WorkFailed as error:
            self._drop_unconverted(candidate, error)
            return False
        candidate.contents = Contents(answer["weights"], answer["weight_bytes"], answer["computes"])
        if candidate.route.deployable:
            candidate.size_bytes = sum(path.stat().st_size for path in candidate.directory.rglob("*") if path.is_file())
        if candidate.given:  # nothing is stated about the precision of a file made elsewhere
            return True
        parameters = parameters_of(self.subject, candidate.route)
        problem = checks.check_contents(candidate.route, candidate.contents, parameters)
        if problem:
            candidate.drop("failed", f"check: {problem}")
        return not problem

    def _drop_unconverted(self, candidate: Candidate, error: WorkFailed) -> None:
        if error.how == "needless":
            candidate.drop("needless", str(error))
        else:
            candidate.drop("timeout" if error.how == "timeout" else "failed", f"{CONVERSION}{error}")

    def _open_and_check(self, candidate: Candidate, batch: int) -> list[Contestant]:
        one = Contestant(candidate, candidate.settings[0], batch)
        try:
            self.open(one)
            if candidate.route.name == BASELINE and candidate.given is None:
                self._baseline_ms = one.warm_ms
            if candidate.route.precision == "float32" and candidate.route.deployable and candidate.given is None:
                family = candidate.route.family
                self._warm_ms[family] = min(one.warm_ms, self._warm_ms.get(family, one.warm_ms))
            if reason := self.too_slow(one):
                candidate.drop("timeout", reason)
            else:
                self.check(one)
        except WorkFailed as error:
            candidate.drop("timeout" if error.how == "timeout" else "failed", f"run: {error}")
        if candidate.over:
            one.close()
            return []
        if free_memory() < KEPT_FREE:
            one.close()
        return [one]

    def too_slow(self, one: Contestant) -> str:
        """Why its check and its rounds would take minutes only to show how slow it is; empty if they would not."""
        if self.accept_slow or one.candidate.given or not one.candidate.route.deployable or self._baseline_ms is None:
            return ""
        times = one.warm_ms / self._baseline_ms
        if one.warm_ms < 1e3 * LONG_UNIT_SECONDS or times < HOPELESS:
            return ""
        return f"a call takes {one.warm_ms / 1e3:.1f} s, {times:.0f} times as long as one of {BASELINE}"

    def open(self, one: Contestant) -> None:
        """Open a contestant in a fresh process, without TensorFlow if its route serves without. Raises WorkFailed."""
        began = time.monotonic()
        try:
            worker = self.processes.worker(self._log("run"), needs_tensorflow(self.subject, one.candidate.route))
            self._workers.append(worker)
            one.open(self.subject, worker, self.memory_limit)
            self.open_seconds = max(self.open_seconds, time.monotonic() - began)
        except WorkFailed:
            one.close()
            raise

    def check(self, one: Contestant, strictly: bool = False, seconds: float = STRICT_SECONDS) -> list[Array]:
        """Compare the answers to held-out samples with the original's; the result is kept in the candidate.

        Strictly: on all samples, and the upper end of the drop's interval has to be within what is allowed. Otherwise
        on some of them, with a tolerance for a few wrong ones by chance. `seconds`: for all answers, strictly.
        """
        candidate = one.candidate
        output = self.directory / f"answers-{next(self._numbers):03d}.npz"
        limits = (ALL_SAMPLES, STRICT_MIN_SAMPLES, seconds) if strictly else (SCREENED, FEWEST, ANSWER_SECONDS)
        answers = one.answers(self.subject, output, *limits)
        original, budget = self.subject.answers("held_out"), self.accuracy.budget
        if candidate.given and not candidate.ours:
            answers, order = foreign.in_original_order(original, answers, candidate.orders.outputs)
            candidate.orders = replace(candidate.orders, outputs=order)
            write_arrays(output, "out", answers)
        if problem := checks.check_count(original, answers, one.asked, one.held_out):
            checked = CheckResult(problem)
        else:
            error, stated = self.subject.float16_error, candidate.given is None
            checked = checks.check_answers(candidate.route, original, answers, budget, error, states_precision=stated)
        bounded = strictly and not candidate.is_model_itself
        judged = 0 if self.accuracy.evaluate is None else 1 if budget.first_output_only else len(answers)
        if bounded and not checked.problem and judged < len(answers):
            checked = checks.check_agreement_bound(checked, original[judged:], answers[judged:], budget)
        if self.accuracy.evaluate is not None and checked.samples:
            with self._evaluation:
                values = self.accuracy.evaluate(output, GROUPS if strictly else 0)
            chance = 0.0 if strictly else CHANCE_SAMPLES / checked.samples
            wider = replace(budget, max_drop=budget.max_drop + chance)
            checked = checks.check_metric(checked, float(values["metric"]), float(values["original"]), wider)
            if bounded:
                checked = checks.check_drop_bound(checked, values, budget)
        candidate.checked = checked
        output.unlink(missing_ok=True)
        if checked.problem:
            candidate.drop("failed", f"check: {checked.problem}")
        return answers

    def _log(self, purpose: str) -> Path:
        return self.directory / "logs" / f"{next(self._numbers):03d}-{purpose}.txt"


def parameters_of(subject: Subject, route: Route) -> int:
    """The weights that an artefact has to contain: those of the core, where the route is given that alone."""
    return subject.core().parameters if isinstance(route, Split) else subject.parameters


def needs_tensorflow(subject: Subject, route: Route) -> bool:
    """Whether TensorFlow serves it, or a stage before or after it."""
    stages = (subject.directory / "before", subject.directory / "after")
    in_tensorflow = any(one.exists() and not one.with_suffix(".json").exists() for one in stages)
    return not route.packages or (isinstance(route, Split) and in_tensorflow)


def _wave(candidate: Candidate) -> int:
    route = candidate.route
    if not route.deployable:
        return 2
    return 0 if not route.packages or (route.precision == "float32" and not candidate.given) else 1


def _urgency(candidate: Candidate) -> int:
    """Sort key within a wave: the model itself, TensorFlow, whose forms are quickly made, other runtimes."""
    route = candidate.route
    return 0 if route.name == BASELINE else 1 if not route.packages else 2 + route.order
