"""How many of the routes that could pay were raced, and what goes on from there where some were not."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from flatout.optimize import time_budget
from flatout.optimize.builder import CONVERSION, OUT_OF_TIME
from flatout.optimize.candidates import BASELINE, Candidate
from flatout.optimize.layouts import LAYOUTS
from flatout.optimize.optimizer import Outcome
from flatout.optimize.request import OptimizeRequest

NAMED = 4
"""So many routes are named; of more, the number is told."""


@dataclass(frozen=True)
class Tried:
    routes: int
    """That could pay: all that are installed, and not known to be of no use for this model."""
    raced: int
    open: tuple[str, ...]
    """Those that there was no time for. The others failed: they cannot be converted, or answer wrongly."""
    unserved: int = 0
    """Those that the server of --layout does not run, so that they were left out."""
    interrupted: bool = False
    seconds: float = time_budget.MIN_SECONDS
    """The time budget where the user gives none."""

    @classmethod
    def of(cls, outcome: Outcome) -> Tried:
        contestants = [one for race in outcome.heats for one in race.contestants]
        ran = {id(one.candidate) for one in contestants if one.call_ms() is not None}
        broken = {id(one.candidate) for one in contestants if one.broken}
        could = [
            one
            for one in outcome.candidates
            if one.route.deployable and one.route.name != BASELINE and one.over != "needless"
            if one.ours or one.given is None
        ]
        left = [one.name for one in could if id(one) not in ran | broken and _had_no_time(one)]
        unserved = sum(one.unserved for one in outcome.skipped)
        raced, seconds = sum(id(one) in ran for one in could), time_budget.seconds_for(outcome.subject)
        return cls(len(could), raced, tuple(left), unserved, outcome.interrupted, seconds)

    def text(self, request: OptimizeRequest, command: Sequence[str]) -> str:
        counted = f"{self.raced} of {self.routes} routes raced"
        if self.unserved and request.layout is not None:
            counted += f" ({self.unserved} more are not what {LAYOUTS[request.layout].server} runs)"
        if self.interrupted:
            return f"{counted}.{' What was converted is kept for the next call.' if request.cache else ''}"
        if not self.open:
            return f"{counted}{'; the others failed' if self.raced < self.routes else ''}."
        more = "" if len(self.open) <= NAMED else f" and {len(self.open) - NAMED} more"
        return (
            f"{counted}; there was no time for {', '.join(self.open[:NAMED])}{more}. "
            f"Decide it: {longer(request.seconds or self.seconds, command)}"
        )


def _had_no_time(candidate: Candidate) -> bool:
    if not candidate.over:
        return True  # ready, and not raced
    return candidate.over == "timeout" and (candidate.note == OUT_OF_TIME or candidate.note.startswith(CONVERSION))


def longer(budget: float, command: Sequence[str]) -> str:
    """The same command with three times as much time as it had."""
    seconds = 3 * budget
    if command[:1] != ("optimize",):
        return f"flatout.optimize(…, budget={seconds:.0f})"
    kept = []
    skip = False
    for word in command:
        if not skip and word != "--budget" and not word.startswith("--budget="):
            kept.append(word)
        skip = word == "--budget"
    return shlex.join(["flatout", *kept, "--budget", f"{seconds / 60:.0f}m" if seconds >= 120 else f"{seconds:.0f}s"])
