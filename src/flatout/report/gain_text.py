"""What a claim gives, as the clause that a tune's verdict begins with: the run first, then the step.

A person waits for the run, so that is the claim. Where it was not measured to its end, the clause says so, and gives
the step's ratio alone.
"""

from __future__ import annotations

from flatout.model.case import Interval, Trial, WholeRun
from flatout.report import words


def gain(claim: Trial, whole: WholeRun | None, steps: str) -> str:
    """`This run is 2.35 times as fast (2.10 to 2.60), its training steps are 10.9 times as fast (9.60 to 11.5)`.

    `steps`: what its steps are called. The claim has a speedup.
    """
    assert claim.speedup is not None
    if claim.stage == "run":  # its speedup is that of whole runs; no race of steps stands behind it
        return _this_run(claim.speedup, whole, estimated=False)
    step = f"{steps} are {words.speedup(claim.speedup)}"
    if whole is None or whole.speedup is None:
        return f"What this run gains is not known, as no whole run was measured; its {step}"
    if not whole.complete:
        return f"What this run gains is not known, as there was no time to see its end; its {step}"
    return f"{_this_run(whole.speedup, whole, whole.estimated)}; its {step}"


def _this_run(found: Interval, whole: WholeRun | None, estimated: bool) -> str:
    bounds = f"{words.factor(found.low)} to {words.factor(found.high)}"
    if found.low > 1.0:
        about = "about " if estimated else ""
        text = f"This run is {about}{words.factor(found.ratio)} times as fast ({bounds}{', estimated' * estimated})"
    else:
        what = "is slower" if found.high < 1.0 else "may gain nothing"
        measured = "estimated at" if estimated else "measured at"
        text = f"This run {what} ({measured} {words.factor(found.ratio)} times as fast, {bounds})"
    if whole is None or whole.tenfold is None:
        return text
    return f"{text}, one with ten times the steps would be {words.factor(whole.tenfold)} times as fast"
