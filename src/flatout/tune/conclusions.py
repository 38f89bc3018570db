"""What follows from the trials of a tune: whether a win keeps the numbers, the best combination, the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flatout.cures import find
from flatout.measure import parity
from flatout.measure.race import WORTH
from flatout.model.case import Case, Trial
from flatout.model.evidence.outcomes import LeverSkipped
from flatout.model.levers import parse, shown
from flatout.model.vocabulary import Equivalence

STRENGTH = {"exact": 0, "reassociated": 1, "precision": 2, "semantic": 3}
CURE_MATTERS = 0.1
"""Share of a step that a cure must promise for the verdict to name it although it was not tried."""
NO_TIME = "no time left for it"
"""How the reason begins why a lever was left out for want of time."""
FEWEST_STEPS = 8
"""Steps that must be seen before anything is compared."""


def promise(levers: Sequence[str]) -> Equivalence:
    """The weakest of what these levers promise."""
    promises = [find(parse(text)[0]).spec.equivalence for text in levers]
    return max(promises, key=lambda one: STRENGTH.get(one, 3), default="exact")


def keeps_the_numbers(equivalence: str) -> bool:
    return STRENGTH.get(equivalence, 3) <= STRENGTH["reassociated"]


def judge(trial: Trial, compared: parity.Parity) -> Trial:
    """A win needs numbers that are as equal as the levers promise."""
    promised = STRENGTH.get(trial.equivalence, 3)
    trial = replace(trial, parity=compared.verdict, note="; ".join(filter(None, [trial.note, compared.sentence])))
    if compared.verdict == "failed" and promised < STRENGTH["semantic"]:
        return replace(trial, status="failed")
    if compared.verdict == "precision" and promised < STRENGTH["precision"]:
        return replace(trial, status="failed")
    if compared.verdict == "unknown" and promised < STRENGTH["semantic"]:
        return replace(trial, status="noise")
    return trial


def ratio(trial: Trial) -> float:
    return trial.speedup.ratio if trial.speedup is not None else 0.0


def hurts(trial: Trial) -> bool:
    return trial.status in ("lost", "failed", "timeout")


def best_of(trials: Sequence[Trial]) -> Trial | None:
    """The combination to claim: the fastest; of those as fast within a few percent, the one with fewest levers."""
    won = [trial for trial in trials if trial.stage == "combination" and trial.status == "won"]
    fastest = max(map(ratio, won), default=0.0)
    close = [trial for trial in won if ratio(trial) >= 0.97 * fastest]
    return min(close, key=lambda trial: len(trial.levers), default=None)


def holds(patched: Trial, best: Trial) -> bool:
    """Whether the patched program shows the speedup that the levers have shown."""
    if patched.speedup is None or patched.status != "won":
        return False
    return patched.speedup.low > WORTH and patched.speedup.high >= 0.95 * ratio(best)


def verdict_of(case: Case) -> str:
    """One sentence; it claims only what was confirmed in fresh processes."""
    if case.steps is None:
        why = f" ({case.program.error})" if case.program.error else ""
        return f"No step was seen{why}, so there is nothing to tune."
    if case.steps.count < FEWEST_STEPS:
        return f"Only {case.steps.count} steps were seen: too few to compare anything."
    best = best_of(case.trials)
    if best is not None and best.speedup is not None:
        interval = f"[{best.speedup.low:.2f}, {best.speedup.high:.2f}]"
        return f"{best.speedup.ratio:.2f} times as fast {interval} with {shown(best.levers)}; numbers: {best.parity}."
    tried = [trial for trial in case.trials if trial.stage == "single"]
    won = [trial for trial in tried if trial.status == "won"]
    unconfirmed = [trial for trial in won if keeps_the_numbers(trial.equivalence)]
    if unconfirmed:
        confirmations = [trial for trial in case.trials if trial.stage == "combination"]
        why = "the confirmation did not show it."
        if confirmations and all(trial.undecided for trial in confirmations):
            why = "there was too little time to confirm it. A larger --budget gives more."
        return f"Nothing is claimed: {_names(unconfirmed)} was faster at first, and {why}"
    if won:
        texts = (f"{shown(trial.levers)} {ratio(trial):.2f}×" for trial in won)
        changed = won[0].equivalence
        return f"Nothing worth changing that keeps the numbers; what changes them ({changed}): {', '.join(texts)}."
    waiting = [trial for trial in tried if trial.undecided]
    other = _untried_cure(case)
    if waiting:
        more = "A longer run or a larger --budget gives them more."
        return f"Not decided: too few rounds of {_names(waiting)}. {more}{other}"
    if not tried:
        if any(item.note.startswith(NO_TIME) for item in case.evidence_of(LeverSkipped)):
            return f"Nothing was tried: there was no time left after the start. A larger --budget gives more.{other}"
        return f"Nothing was tried: no lever fits this program{' as the training is' if other else ''}.{other}"
    nothing = "Nothing worth changing as the training is" if other else "Nothing worth changing"
    return f"{nothing}: of {len(tried)} changes tried, none was faster beyond the noise.{other}"


def _untried_cure(case: Case) -> str:
    """A sentence on a cure that diagnosis expects much of, but that changes the training and so was not tried."""
    tried = {parse(text)[0] for trial in case.trials for text in trial.levers}
    cures = [
        (finding.cost_share, find(parse(fix.lever)[0]))
        for finding in case.findings
        for fix in finding.fixes
        if fix.lever and finding.cost_share is not None and finding.cost_share >= CURE_MATTERS
    ]
    untried = [
        (share, lever)
        for share, lever in cures
        if lever.spec.equivalence == "semantic" and lever.name not in tried and lever.spec.skip(case) is None
    ]
    if not untried:
        return ""
    share, lever = max(untried, key=lambda cure: cure[0])
    option = "--allow semantic" if lever.spec.by_default else f"--lever {lever.name}"
    return f" {lever.name}, the cure for {share:.0%} of each step, changes the training itself: {option} tries it."


def _names(trials: Sequence[Trial]) -> str:
    return ", ".join(shown(trial.levers) for trial in trials)
