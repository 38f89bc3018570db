"""What a tune claims and what it does not. The verdict, the first line of each screen and all views ask here, so that
none of them shows a ratio that another one refuses.
"""

from __future__ import annotations

from typing import Literal

from flatout.model.case import Case, Trial, WholeRun
from flatout.model.vocabulary import ParityVerdict

WEAKNESS = ("exact", "reassociated", "precision", "statistical")

NotClaimed = Literal["", "not-measured", "no-end", "no-ratio", "no-gain", "slower"]
"""Why a claim says nothing of the run, or that it gains nothing. not-measured: no whole run was made. no-end: the time
was up before its end. no-ratio: its runs were not comparable, as their note says. no-gain: its interval holds 1."""


def not_claimed(claim: Trial, whole: WholeRun | None) -> NotClaimed:
    """Why the ratio of whole runs is not claimed; empty where it is. A claim without it is one of the steps alone."""
    if claim.stage == "run":
        return ""
    if whole is None or (whole.speedup is None and whole.after_seconds is None):
        return "not-measured"
    if not whole.complete:
        return "no-end"
    if whole.speedup is None:
        return "no-ratio" if whole.pairs else "not-measured"
    if whole.speedup.low > 1.0:
        return ""
    return "slower" if whole.speedup.high < 1.0 else "no-gain"


def claimed(case: Case) -> Trial | None:
    """The trial whose speedup is claimed."""
    conclusion = case.conclusion
    if not case.tuned or (conclusion is not None and conclusion.outcome != "won"):
        return None
    won = [one for one in case.trials if one.status == "won" and one.levers == case.tuned and one.speedup is not None]
    if conclusion is not None and conclusion.stage:
        return next((one for one in reversed(won) if one.stage == conclusion.stage), None)
    # Of earlier versions: the interval that the verdict states.
    stages = [one for one in won if one.stage in ("combination", "patch", "run")]
    told = (one for one in stages if one.speedup is not None and bounds(one) in case.verdict)
    return next(told, next(iter(stages), None))


def refused(case: Case) -> Trial | None:
    """The fastest of what was faster and is not claimed, as its results are not the same or could not be compared."""
    conclusion = case.conclusion
    if conclusion is None or conclusion.outcome != "not-the-same":
        return None
    if conclusion.stage:
        about = (conclusion.stage, conclusion.levers)
        return next((one for one in reversed(case.trials) if (one.stage, one.levers) == about), None)
    found = [
        trial
        for trial in case.trials
        if trial.speedup is not None
        and trial.stage != "bound"
        and trial.speedup.low > 1.0
        and (trial.status in ("failed", "noise") or trial.equivalence in ("precision", "semantic"))
    ]
    return max(found, key=lambda trial: trial.speedup.ratio if trial.speedup is not None else 0.0, default=None)


def numbers(claim: Trial, whole: WholeRun | None) -> ParityVerdict:
    """The weaker of what the race and the comparison of the whole training show."""
    known = [one for one in (claim.parity, whole.parity if whole is not None else "") if one]
    return max(known, key=lambda one: WEAKNESS.index(one) if one in WEAKNESS else len(WEAKNESS), default="unknown")


def first_steps_alone(whole: WholeRun | None) -> bool:
    """Whether results were compared over the first steps alone, as the whole training could not be."""
    return whole is not None and bool(whole.compared) and not whole.parity


def bounds(trial: Trial) -> str:
    """As the verdict writes them."""
    return f"[{trial.speedup.low:.2f}, {trial.speedup.high:.2f}]" if trial.speedup is not None else ""
