"""One program in two environments: what comes out of `flatout compare --env A --env B`, and its verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flatout.compare import formatting
from flatout.compare.change import Change, Outcome
from flatout.compare.differences import Difference
from flatout.measure.race import WORTH
from flatout.model.case import Interval, to_plain


@dataclass(frozen=True)
class EnvironmentComparison:
    program: str
    before: str
    """The environments, for people."""
    after: str
    step: Change
    """From the race: paired rounds, in processes that were started anew several times."""
    rounds: int = 0
    groups: int = 0
    """So often both sides were started anew."""
    whole: Change | None = None
    """The program from its start to its end, where there was time for it."""
    phases: tuple[Change, ...] = ()
    """Parts of the run besides its steps, from the observed runs."""
    parts: tuple[Change, ...] = ()
    """Of the step, from the traced steps of the observed runs."""
    ops: tuple[Change, ...] = ()
    """By type. Only those that differ beyond their interval, the largest difference first."""
    layers: tuple[Change, ...] = ()
    """The same by layer."""
    traces: tuple[Difference, ...] = ()
    settings: tuple[Difference, ...] = ()
    """Flags, and how models were compiled."""
    packages: tuple[Difference, ...] = ()
    findings: tuple[Difference, ...] = ()
    """Causes that were found on one side only."""
    notes: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        return self.step.outcome

    @property
    def verdict(self) -> str:
        return _verdict(self)

    @property
    def blamed(self) -> tuple[Change, ...]:
        """The parts of the step and of the run that explain the difference, the largest first."""
        found = [one for one in (*self.parts, *self.ops) if one.outcome == self.outcome]
        return tuple(sorted(found, key=lambda one: -abs(one.after_ms - one.before_ms)))

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = to_plain(self)
        return data | {"outcome": self.outcome, "verdict": self.verdict}


def raced_change(name: str, before_ms: float, after_ms: float, speedup: Interval | None) -> Change:
    """Of a race: `speedup` is how many times longer the side before takes. Two copies of one program differ by a
    percent or two, so a difference counts where its whole interval lies beyond that."""
    if speedup is None:
        return Change(name, before_ms, after_ms)
    share = Interval(1 / speedup.ratio - 1, 1 / speedup.high - 1, 1 / speedup.low - 1)
    outcome: Outcome = "slower" if speedup.high < 1 / WORTH else "faster" if speedup.low > WORTH else "same"
    difference = Interval(after_ms - before_ms, before_ms * share.low, before_ms * share.high)
    return Change(name, before_ms, after_ms, difference, share, outcome)


def _verdict(found: EnvironmentComparison) -> str:
    step = found.step
    if step.share is None:
        return "Whether the two environments differ is not known: too few steps were seen side by side."
    if step.outcome == "same":
        least = max(abs(step.share.low), abs(step.share.high))
        return (
            f"No measurable difference: a step takes {formatting.milliseconds(step.before_ms)} in both. "
            f"A difference of more than {100 * least:.0f} % would have been seen."
        )
    times, low, high = (1 + value for value in (step.share.ratio, step.share.low, step.share.high))
    return (
        f"A step takes {times:.2f} times as long ({low:.2f} to {high:.2f}) with {found.after} as with {found.before}: "
        f"{formatting.milliseconds(step.before_ms)} → {formatting.milliseconds(step.after_ms)}."
    )
