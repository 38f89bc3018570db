"""What a claim gives, as the clause that a tune's verdict begins with: the run first, then the step.

A person waits for the run, so that is the claim. Where it was not measured to its end, the clause says so, and gives
the step's ratio alone.
"""

from __future__ import annotations

from flatout.model.case import Interval, Trial, WholeRun
from flatout.report import words
from flatout.report.claims import not_claimed
from flatout.report.formatting import clean

COUNTS = {1: "One change makes", 2: "Two changes make", 3: "Three changes make"}


def gain(claim: Trial, whole: WholeRun | None, steps: str) -> str:
    """`One change makes this run 2.35 times as fast (2.10 to 2.60), its training steps 10.9 times (9.60 to 11.5)`.

    `steps`: what its steps are called. The claim has a speedup.
    """
    assert claim.speedup is not None
    begins = COUNTS.get(len(claim.levers), f"{len(claim.levers)} changes make")
    if whole is not None and whole.next_start:
        begins = f"From its second start on, {begins[0].lower()}{begins[1:]}"
    if claim.stage == "run":  # its speedup is that of whole runs; no race of steps stands behind it
        return f"{begins} this run {_run(claim.speedup, estimated=False)}{_tenfold(whole)}"
    step, why = f"{steps} {words.speedup(claim.speedup)}", not_claimed(claim, whole)
    if why == "not-measured" or whole is None:
        return f"{begins} its {step}; what the whole run gains was not measured"
    if why == "no-end":
        return f"{begins} its {step}; what the whole run gains is not known, as there was no time to see its end"
    if why == "no-ratio" or whole.speedup is None:
        return f"{begins} its {step}; what the whole run gains is not known: {clean(whole.note, 200)}"
    if not why:
        also = f"its {steps} {words.factor(claim.speedup.ratio)} times ({_bounds(claim.speedup)})"
        return f"{begins} this run {_run(whole.speedup, whole.estimated)}, {also}{_tenfold(whole)}"
    what = "is slower" if why == "slower" else "may gain nothing"
    measured = "estimated at" if whole.estimated else "measured at"
    ratio = f"{words.factor(whole.speedup.ratio)} times as fast, {_bounds(whole.speedup)}"
    return f"{begins} its {step}, but a run as short as this one {what} ({measured} {ratio}){_tenfold(whole)}"


def _run(found: Interval, estimated: bool) -> str:
    about = "about " if estimated else ""
    return f"{about}{words.factor(found.ratio)} times as fast ({_bounds(found)}{', estimated' * estimated})"


def _bounds(found: Interval) -> str:
    return f"{words.factor(found.low)} to {words.factor(found.high)}"


def _tenfold(whole: WholeRun | None) -> str:
    if whole is None or whole.tenfold is None:
        return ""
    return f", and a run with ten times the steps {words.factor(whole.tenfold)} times as fast"
