"""The numbers and sentences of a comparison as text. All views use these, so that they agree."""

from __future__ import annotations

from collections.abc import Sequence

from flatout.compare.change import Change
from flatout.compare.machine_speed import MachineShift
from flatout.compare.run_spread import Spread
from flatout.model.case import Interval
from flatout.store.run_summary import RUN_NUMBERS, Run

MENTIONED = 0.02
"""A correction for the speed of the machine is mentioned from this share on."""
OUTCOMES = {"slower": "slower", "faster": "faster", "same": "no measurable difference", "unknown": "too few steps"}
OTHER_MACHINE = "The two sides ran on different machines: the change is not due to the program alone."
OTHER_PROGRAM = "The two sides are different programs or have different arguments: not only the speed differs."
NO_DIFFERENCES = "No recorded difference in the program, the machine, the libraries or the settings."


def milliseconds(value: float) -> str:
    if value >= 1000:
        return f"{value / 1000:.3g} s" if value < 10_000 else f"{value / 1000:.0f} s"
    if abs(value) < 0.1:
        return f"{round(1000 * value, 1):g} µs" if abs(value) >= 0.00005 else "0 ms"
    return f"{value:.3g} ms" if value < 100 else f"{value:.0f} ms"


def change(share: Interval) -> str:
    """`+3.1 % [−2.0 %, +8.4 %]`"""
    return f"{percent(share.ratio)} [{percent(share.low)}, {percent(share.high)}]"


def more(share: Interval) -> str:
    """`15.0 % [9.1 %, 21.2 %] more time`, `6.03 times as long [1.26, 28.8]`"""
    if share.ratio >= 1:
        times, low, high = (
            f"{1 + part:#.3g}" if part < 999 else f"{1 + part:,.0f}" for part in (share.ratio, share.low, share.high)
        )
        return f"{times} times as long [{low}, {high}]"
    if share.ratio >= 0:
        return f"{_rounded(share.ratio)} [{_rounded(share.low)}, {_rounded(share.high)}] more time"
    return f"{_rounded(-share.ratio)} [{_rounded(-share.high)}, {_rounded(-share.low)}] less time"


def percent(share: float) -> str:
    return _rounded(share, "+")


def _rounded(share: float, sign: str = "") -> str:
    """In percent with one decimal; what rounds to zero has no minus sign."""
    return f"{round(100 * share, 1) + 0.0:{sign}.1f} %".replace("-", "−")


def difference(interval: Interval) -> str:
    return f"[{signed(interval.low)}, {signed(interval.high)}]"


def signed(value: float) -> str:
    return ("−" if value < 0 else "+") + milliseconds(abs(value))


def machine_note(shift: MachineShift | None) -> str:
    """The correction for the speed of the machine, where it is large enough to mention."""
    if shift is None or abs(1 - shift.factor) < MENTIONED:
        return ""
    difference = f"{100 * abs(shift.slower):.0f} % {'slower' if shift.slower > 0 else 'faster'}"
    return (
        f"The machine itself was {difference} after. This is corrected for: {milliseconds(shift.measured_ms)} were "
        f"measured, which is {milliseconds(shift.measured_ms * shift.factor)} at the speed before."
    )


def side_name(runs: Sequence[Run]) -> str:
    """The runs of a side: `train-20261115-081500` or `3 runs, train-… to train-…`."""
    if len(runs) == 1:
        return runs[0].name
    return f"{len(runs)} runs, {runs[0].name} to {runs[-1].name}"


def source_state(run: Run) -> str:
    """`main a1b2c3d`, with a plus sign if there were uncommitted changes."""
    commit = run.commit[:7] + ("+" if run.changes else "")
    return " ".join(filter(None, (run.branch if run.commit else "", commit)))


def interval_note(spread: Spread, runs: int) -> str:
    """How the interval was obtained."""
    known = f"corrected by {spread.repeats} repeats" if spread.repeats else "assumed, as there are no repeats"
    return (
        f"The interval (95 %) accounts for steps that depend on the steps before them, and for two runs of the same "
        f"program differing by {100 * spread.share:.1f} % (standard deviation; {known})."
        + ("" if runs > 2 else " More runs on each side make it narrower: `flatout compare A1,A2,A3 B1,B2,B3`.")
    )


def change_row(one: Change) -> tuple[str, str, str, str, str]:
    """Name, before, after, change with its interval, and the outcome."""
    if one.share is not None and one.name in ("step", *RUN_NUMBERS):
        text = change(one.share)
    elif one.difference_ms is not None:
        text = f"{signed(one.difference_ms.ratio)} {difference(one.difference_ms)}"
    else:
        text = signed(one.after_ms - one.before_ms)
    return one.name, milliseconds(one.before_ms), milliseconds(one.after_ms), text, OUTCOMES[one.outcome]
