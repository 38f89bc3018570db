"""Makes candidates ready, a few at a time: converted, looked into, opened in a fresh process, checked.

Routes of one runtime share a converter's process one after the other, which saves their imports; a conversion that
crashes, hangs or takes too much memory costs that process, and the next begins in a new one. Nothing is timed
meanwhile.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from flatout.environment.machine import cores, free_memory
from flatout.measure.race.rules import HOPELESS, LONG_UNIT_SECONDS
from flatout.optimize import checks, lineup
from flatout.optimize.checks import Budget
from flatout.optimize.contestant import ANSWER_SECONDS, FEWEST, SCREENED, Contestant
from flatout.optimize.lineup import Candidate
from flatout.optimize.work.workers import start_worker
from flatout.process.fork_server import ForkServer
from flatout.process.watchdog import Watchdog
from flatout.process.worker import Worker, WorkFailed
from flatout.routes._route import Contents
from flatout.subject.subject import Array, Subject

CONVERT_SECONDS = 240.0
INSPECT_SECONDS = 60.0
JUDGE_SECONDS = 120.0
STRICT_SECONDS = 45.0
FEWEST_STRICTLY = 128
EVERY = 1 << 40
BY_CHANCE = 3
"""Samples that may go wrong in a screening beyond what the budget allows."""
SHARE_OF_MEMORY = 0.7
KEPT_FREE = 2 << 30
"""Contestants are kept open for the race only while so much memory is left."""

JudgeCall = Callable[[Path], dict[str, Any]]


class Workshop:
    def __init__(
        self,
        subject: Subject,
        directory: Path,
        watchdog: Watchdog,
        server: ForkServer | None,
        budget: Budget,
        judge: JudgeCall | None,
        deadline: float,
        say: Callable[[str], None] = lambda text: None,
        patient: bool = False,
    ) -> None:
        """`patient`: what is many times slower than the model itself is checked and raced all the same."""
        self.subject = subject
        self.directory = directory
        self.watchdog = watchdog
        self.server = server
        self.budget = budget
        self.deadline = deadline
        self.say = say
        self.patient = patient
        self.memory_limit = int(SHARE_OF_MEMORY * free_memory())
        self.done = 0
        self._judge = judge
        self._judging = threading.Lock()
        self._numbers = itertools.count(1)
        self._workers: list[Worker] = []
        self._baseline_ms: float | None = None

    def make(self, candidates: Sequence[Candidate], batch: int) -> list[Contestant]:
        """Those that came through, with their first setting. The others say in their `note` why not."""
        families: dict[str, list[Candidate]] = {}
        for candidate in sorted(candidates, key=_last_if_time_is_short):
            own = candidate.route.name if candidate.route.name == lineup.BASELINE else candidate.route.family
            families.setdefault(own, []).append(candidate)
        with ThreadPoolExecutor(max_workers=max(1, min(cores(), 4))) as pool:
            made = pool.map(lambda family: self._family(family, batch), families.values())
            try:
                return [one for members in made for one in members]
            except KeyboardInterrupt:
                self.stop()
                raise

    def stop(self) -> None:
        """Nobody waits for what is under way."""
        self.deadline = 0.0
        for worker in list(self._workers):
            worker.end()

    def _family(self, candidates: Sequence[Candidate], batch: int) -> list[Contestant]:
        worker: Worker | None = None
        ready = []
        try:
            for candidate in candidates:
                if time.monotonic() > self.deadline and not (candidate.route.name == lineup.BASELINE and self.deadline):
                    candidate.drop("timeout", "there was no time left to try it: give more with --budget")
                    continue
                if worker is None or not worker.alive:
                    worker = start_worker(self._log("convert"), self.watchdog, self.server)
                    self._workers.append(worker)
                if self._converted(candidate, worker):
                    ready += self._opened(candidate, batch)
                self._tell(candidate)
        finally:
            if worker is not None:
                worker.end()
        return ready

    def _converted(self, candidate: Candidate, worker: Worker) -> bool:
        where, given = str(candidate.directory), candidate.given
        task = {"subject": str(self.subject.directory)} if given is None else {"given": str(given.resolve())}
        try:
            candidate.directory.mkdir(parents=True)
            said = worker.ask(
                "convert" if given is None else "adopt",
                min(CONVERT_SECONDS, max(self.deadline - time.monotonic(), 30.0)),
                self.memory_limit,
                route=candidate.route.name,
                directory=where,
                **task,
            )
            candidate.convert_ms = 1e3 * said["seconds"]
            inside = worker.ask(
                "inspect", INSPECT_SECONDS, self.memory_limit, route=candidate.route.name, directory=where
            )
        except WorkFailed as error:
            if error.how == "needless":
                candidate.drop("needless", str(error))
            else:
                candidate.drop("timeout" if error.how == "timeout" else "failed", f"conversion: {error}")
            return False
        candidate.inside = Contents(inside["weights"], inside["weight_bytes"], inside["computes"])
        if candidate.route.deployable:
            candidate.size_bytes = sum(path.stat().st_size for path in candidate.directory.rglob("*") if path.is_file())
        # What the user brought is what it is: it states nothing about itself.
        problem = "" if candidate.given else checks.contents(candidate.route, candidate.inside, self.subject.parameters)
        if problem:
            candidate.drop("failed", f"check: {problem}")
        return not problem

    def _opened(self, candidate: Candidate, batch: int) -> list[Contestant]:
        one = Contestant(candidate, candidate.settings[0], batch)
        try:
            self.open(one)
            if candidate.route.name == lineup.BASELINE and candidate.given is None:
                self._baseline_ms = one.warm_ms
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
        """Why its check and its rounds would cost minutes and only show how slow it is; empty where they would not."""
        if self.patient or one.candidate.given or not one.candidate.route.deployable or self._baseline_ms is None:
            return ""
        times = one.warm_ms / self._baseline_ms
        if one.warm_ms < 1e3 * LONG_UNIT_SECONDS or times < HOPELESS:
            return ""
        return f"a call takes {one.warm_ms / 1e3:.1f} s, {times:.0f} times as long as one of {lineup.BASELINE}"

    def open(self, one: Contestant) -> None:
        """In a fresh process; raises WorkFailed."""
        try:
            worker = start_worker(self._log("run"), self.watchdog, self._server_for(one))
            self._workers.append(worker)
            one.open(self.subject, worker, self.memory_limit)
        except WorkFailed:
            one.close()
            raise

    def _server_for(self, one: Contestant) -> ForkServer | None:
        """What serves without TensorFlow is opened in a process without it."""
        return None if one.candidate.route.packages else self.server

    def check(self, one: Contestant, strictly: bool = False) -> list[Array]:
        """Hold its answers to held-out samples against the original's; the candidate remembers.

        Strictly is on all of them; otherwise on some, with room for the few that chance may have put among those.
        """
        candidate = one.candidate
        output = self.directory / f"answers-{next(self._numbers):03d}.npz"
        limits = (EVERY, FEWEST_STRICTLY, STRICT_SECONDS) if strictly else (SCREENED, FEWEST, ANSWER_SECONDS)
        given = one.answers(self.subject, output, *limits)
        checked = checks.answers(
            candidate.route, self.subject.answers("held_out"), given, self.budget, self.subject.float16_error
        )
        if candidate.given and checked.problem.startswith("it is stated"):
            checked = replace(checked, problem="")
        if self._judge is not None and checked.samples:
            with self._judging:
                said = self._judge(output)
            chance = 0.0 if strictly else BY_CHANCE / checked.samples
            budget = replace(self.budget, max_drop=self.budget.max_drop + chance)
            checked = checks.in_metric(checked, float(said["metric"]), float(said["original"]), budget)
        candidate.checked = checked
        output.unlink(missing_ok=True)
        if checked.problem:
            candidate.drop("failed", f"check: {checked.problem}")
        return given

    def _tell(self, candidate: Candidate) -> None:
        self.done += 1
        if candidate.over:
            self.say(f"{candidate.name}: {candidate.note}")
        else:
            self.say(f"{candidate.name}: ready")

    def _log(self, what: str) -> Path:
        return self.directory / "logs" / f"{next(self._numbers):03d}-{what}.txt"


def _last_if_time_is_short(candidate: Candidate) -> int:
    """The model itself, other runtimes, TensorFlow in other ways, what is only compared with."""
    route = candidate.route
    if route.name == lineup.BASELINE:
        return 0
    return 3 if not route.deployable else 1 if route.packages else 2
