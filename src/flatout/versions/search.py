"""`flatout bisect --good A --bad B PROGRAM`: each environment of a row is raced against the good one."""

from __future__ import annotations

import math
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from flatout.compare.bisection import Bisection, BisectionOutcome, Tried
from flatout.compare.environments import raced_change
from flatout.model.case import Interval
from flatout.model.errors import EnvironmentNotMade, ProgramUnusable
from flatout.process.fence.means import decide
from flatout.process.watchdog import Watchdog
from flatout.report.progress import Progress
from flatout.versions.bisection import first_slow
from flatout.versions.contest import Entrant, Result, contest
from flatout.versions.environments import environment
from flatout.versions.observation import launch_in, observe
from flatout.versions.releases import Stop, row
from flatout.versions.request import Subject
from flatout.versions.session import LEAST_SECONDS, told
from flatout.versions.specification import Specification, specification


@dataclass(frozen=True)
class BisectRequest:
    subject: Subject
    good: str
    bad: str
    versions: tuple[str, ...] = ()
    """Releases to try; empty: all that there are."""
    budget: float = 120.0
    """Seconds of each comparison, without the time that making an environment takes."""
    quiet: bool = False


def bisect(request: BisectRequest) -> Bisection:
    """Raises `InvalidOption`, `EnvironmentNotMade` and `ProgramUnusable` where good or bad cannot be measured."""
    decide(request.subject.leave)
    stops = row(specification(request.good), specification(request.bad), request.versions)
    with Progress(math.inf, request.quiet) as progress:
        search = Search(request, stops, progress)
        try:
            return search.run()
        finally:
            search.close()


class Search:
    def __init__(self, request: BisectRequest, stops: list[Stop], progress: Progress) -> None:
        self.request = request
        self.stops = stops
        self.progress = progress
        self.tried: list[Tried] = []
        self._scratch = Path(tempfile.mkdtemp(prefix="flatout-bisect-"))
        self._watchdog = Watchdog()
        self._number = 0

    def close(self) -> None:
        self._watchdog.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def run(self) -> Bisection:
        good = self._entrant(self.stops[0].specification)
        raced = self._race(good, self._entrant(self.stops[-1].specification))
        whole = _tried(self.stops[-1].name, raced, 1.0)
        change = raced_change("step", raced.before_ms, raced.after_ms, raced.verdict.speedup)
        if change.outcome != "slower" or whole.times is None:
            return self._found("not-slower", whole)
        middle = math.sqrt(whole.times.ratio)

        def ask(number: int) -> bool | None:
            one = self._tried(good, self.stops[number], middle)
            self.tried.append(one)
            self.progress.say(f"{one.name}: {_said(one)}")
            return one.slow

        found = first_slow(len(self.stops), ask)
        names = [stop.name for stop in self.stops]
        passed = tuple(names[number] for number in found.unknown)
        return self._found("found", whole, names[found.good], names[found.bad], passed)

    def _found(
        self, outcome: BisectionOutcome, whole: Tried, good: str = "", bad: str = "", passed: tuple[str, ...] = ()
    ) -> Bisection:
        return Bisection(
            program=told(self.request.subject),
            good=self.request.good,
            bad=self.request.bad,
            outcome=outcome,
            whole=whole,
            last_good=good,
            first_bad=bad,
            passed_over=passed,
            tried=tuple(self.tried),
            environments=len(self.stops),
        )

    def _tried(self, good: Entrant, stop: Stop, middle: float) -> Tried:
        """What cannot be installed, or does not run the program, is passed over."""
        try:
            return _tried(stop.name, self._race(good, self._entrant(stop.specification)), middle)
        except (EnvironmentNotMade, ProgramUnusable) as error:
            return Tried(stop.name, note=str(error).splitlines()[0])

    def _entrant(self, spec: Specification) -> Entrant:
        made = environment(spec, self.progress.say)
        launch = launch_in(self.request.subject, made)
        self.progress.phase(f"observing the program with {made.title}")
        end = time.monotonic() + max(self.request.budget / 2, LEAST_SECONDS)
        seen = observe(launch, made, self._directory("observed"), self._watchdog, self.progress.tick, end)
        return Entrant(launch, made.title, seen.case, seen.ended)

    def _race(self, good: Entrant, other: Entrant) -> Result:
        self.progress.phase(f"racing {other.title}")
        end = time.monotonic() + self.request.budget
        return contest(good, other, self._directory("race"), self._watchdog, self.progress, end)

    def _directory(self, name: str) -> Path:
        self._number += 1
        return self._scratch / f"{name}-{self._number}"


def _tried(name: str, raced: Result, middle: float) -> Tried:
    speedup = raced.verdict.speedup
    if speedup is None:
        return Tried(name, note="too few steps were seen")
    times = Interval(1 / speedup.ratio, 1 / speedup.high, 1 / speedup.low)
    sure = times.low > middle or times.high < middle
    return Tried(name, times, times.ratio > middle, sure)


def _said(one: Tried) -> str:
    if one.times is None or one.slow is None:
        return f"passed over: {one.note}"
    return f"{'slow' if one.slow else 'as fast as before'}, {one.times.ratio:.2f} times as long as the good one"
