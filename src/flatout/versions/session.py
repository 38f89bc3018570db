"""`flatout compare --env A --env B PROGRAM` from beginning to end: environments, observed runs, race, whole runs."""

from __future__ import annotations

import shlex
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from flatout.compare.change import Change
from flatout.compare.environments import EnvironmentComparison, raced_change
from flatout.model.errors import FlatoutError
from flatout.process.fence.means import decide
from flatout.process.watchdog import Watchdog
from flatout.report.progress import Progress
from flatout.trial import whole_run
from flatout.tune.whole_runs import Fallen, measure
from flatout.versions import differences
from flatout.versions.contest import Entrant, Result, contest
from flatout.versions.differences import Side
from flatout.versions.environments import Environment, environment
from flatout.versions.observation import Observed, launch_in, observe
from flatout.versions.request import CompareRequest, Subject
from flatout.versions.specification import specification

OBSERVED = 2
"""Runs of each side that are observed, in turns."""
FOR_MORE = 0.3
"""Of the time that is left: what observing both once more may take."""
LEAST_SECONDS = 120.0
"""What an observed run gets even where the time is up."""
FOR_RACE = 0.6
"""Of the time that is left after these."""


def compare_environments(request: CompareRequest) -> EnvironmentComparison:
    """Raises `InvalidOption`, `EnvironmentNotMade` and `ProgramUnusable`."""
    decide(request.subject.leave)  # raises where trials cannot be fenced, before an environment is made
    specs = specification(request.before), specification(request.after)
    with Progress(request.budget, request.quiet) as progress:
        made = [environment(spec, progress.say) for spec in specs]
        return Meeting(request, made[0], made[1], progress).compare()


class Meeting:
    """Two environments and the program."""

    def __init__(self, request: CompareRequest, before: Environment, after: Environment, progress: Progress) -> None:
        self.request = request
        self.environments = (before, after)
        self.progress = progress
        self.launches = tuple(launch_in(request.subject, one) for one in self.environments)
        self.end = time.monotonic() + request.budget
        self.notes: list[str] = []
        self._numbers = iter(range(1, 1000))

    def compare(self) -> EnvironmentComparison:
        """All of it."""
        scratch = Path(tempfile.mkdtemp(prefix="flatout-compare-"))
        watchdog = Watchdog()
        try:
            sides = self.observe(scratch, watchdog, OBSERVED)
            raced = self.race(sides, scratch, watchdog, FOR_RACE)
            whole = self._whole(sides, scratch, watchdog)
            return self._concluded(sides, raced, whole)
        finally:
            watchdog.close()
            shutil.rmtree(scratch, ignore_errors=True)

    def observe(self, scratch: Path, watchdog: Watchdog, times: int) -> tuple[Side, Side]:
        """Each side so many times, in turns; the first in the first environment, as in the last."""
        found: tuple[list[Observed], list[Observed]] = ([], [])
        began = time.monotonic()
        for turn in range(times):
            if turn and (time.monotonic() - began) / turn > FOR_MORE * (self.end - time.monotonic()):
                break
            for number in (0, 1) if turn % 2 == 0 else (1, 0):
                one = self.environments[number]
                self.progress.phase(f"observing the program with {one.title}")
                directory = scratch / f"observed-{turn}-{number}"
                latest = max(self.end, time.monotonic() + LEAST_SECONDS)
                seen = observe(self.launches[number], one, directory, watchdog, self.progress.tick, latest)
                found[number].append(seen)
        first, second = (Side(one, tuple(seen)) for one, seen in zip(self.environments, found, strict=True))
        return first, second

    def race(self, sides: tuple[Side, Side], scratch: Path, watchdog: Watchdog, share: float) -> Result:
        self.progress.phase("racing the program in both environments")
        entrants = [
            Entrant(launch, side.environment.title, side.cases[-1], all(one.ended for one in side.observed))
            for launch, side in zip(self.launches, sides, strict=True)
        ]
        end = time.monotonic() + share * max(self.end - time.monotonic(), 0.0)
        return contest(entrants[0], entrants[1], scratch / f"race-{next(self._numbers)}", watchdog, self.progress, end)

    def _whole(self, sides: tuple[Side, Side], scratch: Path, watchdog: Watchdog) -> Change | None:
        """Both from start to end, in turns, where they were seen to end and there is time for it."""
        seconds = [side.cases[-1].program.seconds for side in sides if all(one.ended for one in side.observed)]
        if len(seconds) < 2 or sum(seconds) > self.end - time.monotonic():
            return None
        self.progress.phase("running the whole program in both")

        def run(after: bool, limit: float) -> whole_run.Run:
            directory = scratch / f"whole-{next(self._numbers)}"
            return whole_run.run(self.launches[after], directory, watchdog, limit, self.progress.tick)

        try:
            found = measure(run, None, self.end, False)
        except Fallen as fallen:
            self.notes.append(f"The program does not end in {self.environments[1].title} as it does before: {fallen}.")
            return None
        if found.speedup is None or found.before_seconds is None or found.after_seconds is None:
            self.notes.extend([f"Whole runs have no ratio: {found.note}."] if found.note else [])
            return None
        return raced_change("whole run", 1e3 * found.before_seconds, 1e3 * found.after_seconds, found.speedup)

    def _concluded(self, sides: tuple[Side, Side], raced: Result, whole: Change | None) -> EnvironmentComparison:
        before, after = sides
        step = raced_change("step", raced.before_ms, raced.after_ms, raced.verdict.speedup)
        made = EnvironmentComparison(
            program=told(self.request.subject),
            before=before.environment.title,
            after=after.environment.title,
            step=step,
            rounds=raced.verdict.rounds,
            groups=raced.groups,
            whole=whole,
            phases=differences.phase_changes(before, after),
            traces=differences.trace_differences(before, after),
            packages=differences.package_differences(before.environment, after.environment),
            findings=differences.finding_differences(before, after),
            notes=(*self.notes, *_notes(sides)),
        )
        try:
            seen = differences.observed_comparison(before, after)
        except FlatoutError as error:
            return replace(made, notes=(*made.notes, f"The parts of the step are not known: {error}"))
        return replace(
            made,
            parts=seen.parts,
            ops=differences.op_changes(seen, before, after, differences.op_type),
            layers=differences.op_changes(seen, before, after, differences.layer),
            settings=differences.settings_differences(seen, before, after),
        )


def told(subject: Subject) -> str:
    return shlex.join([*(["-m"] if subject.module else []), subject.program, *subject.arguments])


def _notes(sides: tuple[Side, Side]) -> list[str]:
    """What one environment could not show."""
    found = []
    for side in sides:
        for note in side.cases[-1].notes:
            if "lost" in note.text or "older than" in note.text:
                found.append(f"{side.environment.text}: {note.text}")
    return found
