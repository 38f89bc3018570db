"""`tune --prove`: the program as it is and with its cure, side by side over the whole training, as long as it takes.

Both run with the same random numbers. They take turns: one runs some steps while the other stands still, then all that
both have computed so far is compared (`measure/parity/whole.py`). The first difference ends it. Where something is more
than a few roundings apart, the program runs twice more, as it is and with weights that begin some roundings apart, and
from there on all four run on: what rounding makes of the program is no difference.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from flatout.measure import parity
from flatout.model.case import Proof
from flatout.observe.levers import failed_levers, not_at_work
from flatout.process.watchdog import Watchdog
from flatout.report.progress import Progress, clock
from flatout.trial.child_process import ChildProcess, Ended, Launch, Overdue
from flatout.tune.conclusions import STRENGTH, promise
from flatout.tune.parity import AGREE, ALL_STEPS, FILE

FIRST_BLOCK = 32
ROUND_SECONDS = 20.0
"""How long a turn of all runs is to take, about: then it is compared again."""
LONGEST_SECONDS = 7 * 24 * 3600.0
"""For a turn. Nobody waits for the answer of a program that has hung."""
MOST_NOTES = 6


@dataclass
class Followed:
    """One run of the program that is followed."""

    child: ChildProcess
    ended: bool = False
    failed: str = ""
    """Why it ended, where that was not its own end."""
    steps: int = 0

    @classmethod
    def start(cls, launch: Launch, directory: Path, watchdog: Watchdog) -> Followed:
        directory.mkdir(parents=True)
        return cls(ChildProcess(replace(launch, pinned=True), directory, watchdog))

    def warm_up(self) -> None:
        self._wait(lambda: self.child.warm(LONGEST_SECONDS).steps)

    def advance(self, steps: int) -> None:
        def made() -> int:
            self.child.go(steps, 1)  # it may have been killed while it stood still
            return self.child.block(LONGEST_SECONDS).steps

        if not self.ended:
            self._wait(made)

    def _wait(self, answer: Callable[[], int]) -> None:
        try:
            self.steps += answer()
            self.child.hold()
        except (Ended, Overdue) as end:
            self.ended = True
            self.failed = "" if self.child.ended_well else str(end)

    def numbers(self) -> parity.Numbers | None:
        path = self.child.directory / FILE
        return parity.Numbers.load(path) if path.exists() else None


@dataclass
class Proving:
    baseline: Launch
    trial: Launch
    levers: tuple[str, ...]
    directory: Path
    watchdog: Watchdog
    progress: Progress
    steps_of_program: int | None = None
    runs: dict[str, Followed] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    found: parity.Parity | None = None
    """Of what was compared last."""

    def run(self) -> Proof:
        """Ctrl-C ends it with what was compared by then."""
        interrupted = False
        try:
            self._follow()
        except KeyboardInterrupt:
            interrupted = True
        finally:
            for one in self.runs.values():
                one.child.end()
        return self._proof(interrupted)

    def _follow(self) -> None:
        self._start("as it is", self.baseline)
        self._start("with the cure", self.trial)
        block = FIRST_BLOCK
        while True:
            began = time.monotonic()
            if self._differs() or all(one.ended for one in self.runs.values()):
                return
            self._tell()
            for one in self.runs.values():
                one.advance(block)
            if time.monotonic() - began < ROUND_SECONDS / 2:
                block *= 2

    def _start(self, name: str, launch: Launch) -> None:
        self.progress.say(f"starting the program, {name}")
        one = Followed.start(launch, self.directory / name.replace(" ", "-"), self.watchdog)
        self.runs[name] = one  # from here on its end is seen to: Ctrl-C may come while it warms up
        one.warm_up()

    def _differs(self) -> bool:
        """Compare what there is. Whether that shows a difference."""
        if broken := next(((name, one.failed) for name, one in self.runs.items() if one.failed), None):
            name, why = broken
            changed = name == "with the cure"
            self.found = parity.Parity("failed" if changed else "unknown", None, why if changed else f"{name}, {why}")
            return True
        base, trial = self._numbers("as it is"), self._numbers("with the cure")
        if base is None or trial is None:
            return False
        twin, shaken = self._numbers("as it is, again"), self._numbers("some roundings apart")
        self.found = parity.whole.compare(base, trial, twin, shaken)
        if self.found.verdict in (*AGREE, "unknown"):
            return False
        if twin is None:
            self._start("as it is, again", self.baseline)
            self._start("some roundings apart", replace(self.baseline, perturbed=True))
            as_it_is, *_, again, apart = self.runs.values()
            for one in (again, apart):  # as far as what they are held against
                one.advance(ALL_STEPS if as_it_is.ended else max(as_it_is.steps - one.steps, 1))
            return self._differs()
        itself = parity.whole.compare(base, twin, None, shaken)
        if itself.verdict not in (*AGREE, "unknown"):
            self.found = parity.Parity("unknown", None, f"two runs of the program as it is differ: {itself.sentence}")
            return True
        return STRENGTH.get(promise(self.levers), 3) < STRENGTH["precision"] or self.found.verdict == "failed"

    def _numbers(self, name: str) -> parity.Numbers | None:
        return self.runs[name].numbers() if name in self.runs else None

    def _tell(self) -> None:
        if self.found is None:
            return
        steps = min(one.steps for one in self.runs.values())
        left = ""
        if self.steps_of_program and steps:
            rest = (time.monotonic() - self.began) * max(self.steps_of_program / steps - 1, 0.0)
            left = f", about {clock(rest)} left"
        self.progress.say(f"step {steps:,}{left}: {self.found.sentence}")

    def _proof(self, interrupted: bool) -> Proof:
        found = self.found or parity.Parity("unknown", None, "nothing was compared")
        extent, apart = found.extent or parity.Extent(), found.apart
        promised = self._promised(found.verdict)
        agrees = found.verdict in AGREE or (promised and not extent.few)
        failed = found.verdict in ("failed", "precision") and not promised
        reports = self.runs["with the cure"].child.levers if "with the cure" in self.runs else {}
        lost = "" if failed else failed_levers(reports) if self.trial.sources else not_at_work(reports)
        if lost:  # what was compared is the program with itself
            found = parity.Parity("unknown", None, f"{lost}. {found.sentence}")
            agrees = False
        return Proof(
            self.levers,
            "differs" if failed else "same" if agrees else "not-shown",
            parity=found.verdict,
            compared=found.sentence,
            losses=extent.losses,
            steps=extent.steps,
            epochs=extent.epochs,
            variables=extent.variables,
            of_variables=extent.of_variables,
            outputs=extent.outputs,
            whole=extent.whole,
            interrupted=interrupted,
            seconds=round(time.monotonic() - self.began, 1),
            first_step=apart.steps if apart is not None and failed else None,
            first_thing=apart.what if apart is not None and failed else "",
            by=found.deviation if failed else None,
            notes=tuple(f"{name}: {note}" for name, one in reports.items() for note in one.notes)[:MOST_NOTES],
        )

    def _promised(self, verdict: str) -> bool:
        """Whether this much difference is what the levers promise."""
        return verdict == "precision" and STRENGTH.get(promise(self.levers), 3) >= STRENGTH["precision"]
