"""What follows from single trials: whether a win keeps the numbers, whether an interval is still open, the claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flatout.cures import find
from flatout.measure import parity
from flatout.measure.race import WORTH
from flatout.measure.race.rules import CLOSED, PROMISING
from flatout.model.case import Case, Trial
from flatout.model.levers import parse
from flatout.model.vocabulary import Equivalence

STRENGTH = {"exact": 0, "reassociated": 1, "precision": 2, "semantic": 3}
KEPT = ("exact", "reassociated", "statistical")
"""What a comparison of numbers has come to where they are the same, as far as it can tell."""
NO_TIME = "no time left for it"
"""How the reason begins why a lever was left out for want of time."""
TOO_SHORT = "was stopped when its time was up"
"""What became of a program that was scouted for all its time and had made no step."""
FEWEST_STEPS = 2
"""Steps that must be seen: one to warm up with, one to compare. A program that ends is started again for more."""


def promise(levers: Sequence[str]) -> Equivalence:
    """The weakest of what these levers promise."""
    promises = [find(parse(text)[0]).spec.equivalence for text in levers]
    return max(promises, key=lambda one: STRENGTH.get(one, 3), default="exact")


def keeps_the_numbers(equivalence: str) -> bool:
    return STRENGTH.get(equivalence, 3) <= STRENGTH["reassociated"]


def as_shown(trial: Trial, compared: parity.Parity) -> parity.Parity:
    """What differs no more than another precision explains shows that it is no more, where there were losses enough."""
    few = compared.verdict == "precision" and compared.extent is not None and compared.extent.few
    if not few or STRENGTH.get(trial.equivalence, 3) < STRENGTH["precision"]:
        return compared
    return replace(compared, verdict="unknown", sentence=f"not shown, as losses are lacking: {compared.sentence}")


def judge(trial: Trial, compared: parity.Parity) -> Trial:
    """A win needs numbers that are as equal as the levers promise."""
    compared = as_shown(trial, compared)
    promised = STRENGTH.get(trial.equivalence, 3)
    trial = replace(trial, parity=compared.verdict, note="; ".join(filter(None, [trial.note, compared.sentence])))
    if compared.verdict == "failed" and promised < STRENGTH["semantic"]:
        return replace(trial, status="failed")
    if compared.verdict == "precision" and promised < STRENGTH["precision"]:
        return replace(trial, status="failed")
    if compared.verdict == "unknown" and promised < STRENGTH["semantic"]:
        return replace(trial, status="noise")
    return trial


def not_as_promised(trial: Trial, compared: parity.Parity) -> str:
    """What the whole training shows against a claim, in words; empty where it agrees as the levers promise."""
    if judge(replace(trial, status="won"), compared).status == "failed":
        return compared.sentence
    fills = any(find(parse(text)[0]).spec.fills for text in trial.levers)
    if fills and (compared.extent is None or compared.extent.epochs < 2):
        return f"nothing shows that a second epoch has the elements of the first ({compared.sentence})"
    return ""


def ratio(trial: Trial) -> float:
    return trial.speedup.ratio if trial.speedup is not None else 0.0


def hurts(trial: Trial) -> bool:
    return trial.status in ("lost", "failed", "timeout")


def is_faster(trial: Trial) -> bool:
    """Beyond the noise, whatever it computes."""
    return trial.speedup is not None and trial.speedup.low > WORTH


def is_open(trial: Trial) -> bool:
    """Whether more rounds could still show a gain that matters."""
    if trial.undecided:
        return True
    if trial.status != "noise" or trial.speedup is None or is_faster(trial):
        return False
    return trial.speedup.ratio >= PROMISING or trial.speedup.high >= CLOSED


def not_the_same(trial: Trial) -> bool:
    """Faster beyond the noise, and not the same numbers, or numbers that nobody could compare."""
    return trial.stage != "bound" and is_faster(trial) and trial.parity != "" and trial.status in ("failed", "noise")


def claim_of(case: Case) -> Trial | None:
    """The confirmed trial of the levers that the case is tuned with; that of the patch where it holds only a part."""
    won = [trial for trial in case.trials if trial.status == "won" and trial.levers == case.tuned]
    best = next((trial for trial in won if trial.stage in ("combination", "run")), None) if case.tuned else None
    patched = next((trial for trial in won if trial.stage == "patch"), None) if case.patch else None
    return patched if patched and not (best and holds(patched, best)) else best


def holds(patched: Trial, best: Trial) -> bool:
    """Whether the patched program is as fast as the levers have shown, each within the interval of the other: what is
    claimed of it is their ratio."""
    if patched.speedup is None or patched.status != "won" or best.speedup is None:
        return False
    one, other = patched.speedup, best.speedup
    return one.low > WORTH and one.high >= other.ratio and one.ratio >= other.low
