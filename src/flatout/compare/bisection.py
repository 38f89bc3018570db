"""What comes out of `flatout bisect`: the change that made a program slower, and what was tried to find it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from flatout.model.case import Interval, to_plain

BisectionOutcome = Literal["found", "not-slower"]


@dataclass(frozen=True)
class Tried:
    """One environment of the row, raced against the good one."""

    name: str
    times: Interval | None = None
    """How many times as long a step takes as with the good one."""
    slow: bool | None = None
    """None: it could not be told."""
    sure: bool = True
    """Whether the whole interval is on that side of the middle between good and bad."""
    note: str = ""


@dataclass(frozen=True)
class Bisection:
    program: str
    good: str
    bad: str
    outcome: BisectionOutcome
    whole: Tried
    """The bad one against the good one."""
    last_good: str = ""
    first_bad: str = ""
    passed_over: tuple[str, ...] = ()
    """Between these two, and not to be measured."""
    tried: tuple[Tried, ...] = ()
    environments: int = 0
    """In the row."""

    @property
    def verdict(self) -> str:
        return _verdict(self)

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = to_plain(self)
        return data | {"verdict": self.verdict}


def _verdict(found: Bisection) -> str:
    times = _times(found.whole)
    if found.outcome == "not-slower":
        return f"Nothing to look for: with {found.bad} a step takes {times} as with {found.good}, which is not slower."
    told = f"{found.first_bad} made it slower. A step takes {times} with {found.bad} as with {found.good}; "
    told += f"the last that is as fast as before is {found.last_good}."
    if found.passed_over:
        told += f" It may also be one of these, which could not be measured: {', '.join(found.passed_over)}."
    if any(not one.sure for one in found.tried if one.slow is not None):
        told += " Not every comparison was beyond doubt: a larger --budget makes the intervals narrower."
    return told


def _times(one: Tried) -> str:
    if one.times is None:
        return "an unknown time"
    return f"{one.times.ratio:.2f} times as long ({one.times.low:.2f} to {one.times.high:.2f})"
