"""Numbers of a comparison as a person would write them; every view says them in the same way."""

from __future__ import annotations

from collections.abc import Sequence

from flatout.compare.between import Spread
from flatout.compare.change import Change
from flatout.compare.shift import Shift
from flatout.model.case import Interval
from flatout.store.run import Run

TOLD = 0.02
"""From this share on, what is taken out for the machine is told."""
OUTCOMES = {"slower": "slower", "faster": "faster", "same": "no measurable difference", "unknown": "cannot be told"}


def milliseconds(value: float) -> str:
    if value >= 1000:
        return f"{value / 1000:.3g} s" if value < 10_000 else f"{value / 1000:.0f} s"
    return f"{value:.3g} ms" if value < 100 else f"{value:.0f} ms"


def change(share: Interval) -> str:
    """`+3.1 % [−2.0 %, +8.4 %]`"""
    return f"{percent(share.ratio)} [{percent(share.low)}, {percent(share.high)}]"


def more(share: Interval) -> str:
    """`15.0 % [9.1 %, 21.2 %] more time`"""
    if share.ratio >= 0:
        return f"{100 * share.ratio:.1f} % [{100 * share.low:.1f} %, {100 * share.high:.1f} %] more time"
    return f"{-100 * share.ratio:.1f} % [{-100 * share.high:.1f} %, {-100 * share.low:.1f} %] less time"


def percent(share: float) -> str:
    return f"{100 * share:+.1f} %".replace("-", "−")


def difference(interval: Interval) -> str:
    return f"[{signed(interval.low)}, {signed(interval.high)}]"


def signed(value: float) -> str:
    return ("−" if value < 0 else "+") + milliseconds(abs(value))


def machine(shift: Shift | None) -> str:
    """What was taken out for it, where that is worth a sentence."""
    if shift is None or abs(1 - shift.factor) < TOLD:
        return ""
    than = f"{100 * abs(shift.slower):.0f} % {'slower' if shift.slower > 0 else 'faster'}"
    return (
        f"The machine itself was {than} after, which is taken out: {milliseconds(shift.measured_ms)} were measured, "
        f"{milliseconds(shift.measured_ms * shift.factor)} at the speed before."
    )


def side(runs: Sequence[Run]) -> str:
    """Who stands on a side: `train-20261115-081500` or `3 runs, train-… to train-…`."""
    if len(runs) == 1:
        return runs[0].name
    return f"{len(runs)} runs, {runs[0].name} to {runs[-1].name}"


def state(run: Run) -> str:
    """`main a1b2c3d` and a plus sign where something was changed on top."""
    commit = run.commit[:7] + ("+" if run.changes else "")
    return " ".join(filter(None, (run.branch if run.commit else "", commit)))


def sureness(spread: Spread, runs: int) -> str:
    """How the interval was obtained."""
    known = f"corrected by {spread.repeats} repeats" if spread.repeats else "as stated beforehand: there are no repeats"
    return (
        f"The interval (95 %) counts steps in the blocks in which they lean on each other, and takes two runs of the "
        f"same thing to differ by {100 * spread.share:.1f} % (standard deviation; {known})."
        + ("" if runs > 2 else " More runs on each side make it narrower: `flatout compare A1,A2,A3 B1,B2,B3`.")
    )


def part_row(one: Change) -> tuple[str, str, str, str, str]:
    """Name, before, after, change with its interval, and what that means."""
    if one.share is not None and one.name == "step":
        told = change(one.share)
    elif one.difference_ms is not None:
        told = f"{signed(one.difference_ms.ratio)} {difference(one.difference_ms)}"
    else:
        told = signed(one.after_ms - one.before_ms)
    return one.name, milliseconds(one.before_ms), milliseconds(one.after_ms), told, OUTCOMES[one.outcome]
