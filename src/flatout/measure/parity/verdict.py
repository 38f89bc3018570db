"""Whether a changed program still computes the same: its weights, losses and outputs against those of the unchanged.

Weights are compared by how far they are apart against how far the baseline itself has moved: against their size, a
small learning rate would hide every error. Some variables move by rounding alone (a bias before a batch
normalisation has no gradient, and Adam makes a full step of what is left of it), so the deviation of the weights is the
one that nine tenths of the elements stay below. Losses and outputs are compared by their size. Two right programs drift
apart step by step, so what is allowed grows with the steps; a wrong one is apart as soon as its fault comes into play.

Measured on a perceptron, a convolutional net with batch normalisation and a small transformer, Adam and SGD with
momentum, batch 32, without dropout, after 1 to 64 steps; largest deviation of the weights / of the losses:

    tf.function, several steps a call          0 to 6e-3        / 2e-7
    XLA                                        5e-7 to 3e-2     / 2e-6
    samples of each batch in another order     1e-6 to 0.1      / 8e-4
    mixed bfloat16                             0.09 to 0.6      / 3e-3, once 6e-2
    no regulariser of 1e-4                     0.05 to 0.2      / 1e-3 to 3e-2
    one sample of each batch dropped           0.2 to 0.9       / 3e-3 to 0.2
    one sample dropped once, at step 21        0.02 to 0.1      / 2e-3 to 3e-2
    one update skipped                         0.3              / 0.2 to 0.6
    half the batch                             1 to 2           / 0.03 to 1
    learning rate doubled                      1 to 2           / 0.07 to 1
    loss doubled (Adam hides it)               0.05 to 2        / 1
    the same batch every time                  1 to 5           / 0.2 to 1

The large values of the right changes come late (an order of samples: 1e-5 after 2 steps, 4e-3 after 16, 0.1 after 64),
those of the wrong ones at once: a missing regulariser changes the first loss by 1e-3 at least.
Adam with gradients that are nearly zero (a deep net with batch normalisation, as it begins) makes 0.1 of rounding after
the first step. That can be measured: run with weights that begin some roundings apart, the program deviates as far
(0.06, 0.1, 0.06, 0.04 after 1, 2, 4, 8 steps, where XLA deviates by 0.09, 0.12, 0.06, 0.05), while its losses do not.
A gradient scaled by 1.001 is smaller than what rounding may make in other programs, but it has a direction: where the
deviation is the movement itself, times a number, it is no rounding (`stretch`).
Rounding and faults are decades apart. Another precision and a small fault are not: where a change promises the same
precision, all that is more than rounding has failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from flatout.measure.parity.deviations import Deviation, Key, Kind, deviations, stretch
from flatout.measure.parity.distances import by
from flatout.measure.parity.extent import Extent
from flatout.measure.parity.numbers import Numbers

Agreement = Literal["exact", "reassociated", "precision", "statistical", "failed", "unknown"]
EXACT: Final = "exact"
REASSOCIATED: Final = "reassociated"
PRECISION: Final = "precision"
STATISTICAL: Final = "statistical"
FAILED: Final = "failed"
UNKNOWN: Final = "unknown"
Noise: TypeAlias = dict[Key, float]
"""By the key of a deviation: how far the program differs from itself."""
ORDER = (EXACT, REASSOCIATED, PRECISION, FAILED)


@dataclass(frozen=True)
class Parity:
    verdict: Agreement
    deviation: float | None
    """The largest one, of weights, losses or outputs, whichever came nearest to its limit."""
    sentence: str
    extent: Extent | None = None
    """What was compared, of a comparison over the whole training."""
    apart: Deviation | None = None
    """Where it differs first, where it does."""


@dataclass(frozen=True)
class Limits:
    """The largest deviation that rounding explains after one step, and the largest that another precision explains;
    each grows with the steps to a power."""

    rounding: float
    rounding_growth: float
    precision: float
    precision_growth: float

    def after(self, steps: int) -> tuple[float, float]:
        precision = self.precision * steps**self.precision_growth
        return min(self.rounding * steps**self.rounding_growth, precision / 4), precision


LIMITS: dict[Kind, Limits] = {
    "weights": Limits(5e-3, 1.0, 0.75, 0.0),
    "losses": Limits(5e-5, 1.0, 5e-3, 0.75),
    "outputs": Limits(1e-4, 0.0, 2e-2, 0.0),
}
WIDER = 3.0
"""A trial may differ from the baseline by this many times what two baselines differ by, or what some roundings in each
weight make the program differ by."""


def compare(
    baseline: Numbers,
    trial: Numbers,
    twin: Numbers | None = None,
    perturbed: Numbers | None = None,
    *,
    promise: str = PRECISION,
) -> Parity:
    """`twin` is a second run of the baseline: what differs between those two is no fault of the trial. `perturbed` is
    a run whose weights began a few roundings apart: what differs there comes from rounding alone. `promise` is the
    equivalence that the change claims; where that is exact or reassociated, more than rounding has failed."""
    found = list(deviations(baseline, trial))
    if not found:
        return Parity(UNKNOWN, None, "no number was seen in both")
    chances, roundings = (
        {one.key: WIDER * one.value for one in deviations(baseline, other)} if other is not None else {}
        for other in (twin, perturbed)
    )
    noise = {key: max(chances.get(key, 0.0), roundings.get(key, 0.0)) for key in (*chances, *roundings)}
    decided = [one for one in found if noise.get(one.key, 0.0) <= LIMITS[one.kind].after(one.steps)[1]]
    chance = max(chances.values(), default=0.0) / WIDER
    if not decided:
        whose = "two runs of the unchanged program differ" if chance else "some roundings in its weights make it differ"
        return Parity(UNKNOWN, None, f"{whose} by {max(noise.values()) / WIDER:.1g} themselves")
    ranked = sorted(decided, key=lambda one: _severity(one, noise))
    worst = ranked[-1]
    verdict = _verdict(worst, noise)
    if verdict == EXACT and any(one.value for one in found):  # what was left out of it
        verdict = REASSOCIATED
    if verdict == PRECISION and promise in (EXACT, REASSOCIATED):
        verdict = FAILED
    stride = stretch(baseline, trial)
    if stride is not None and verdict in (EXACT, REASSOCIATED) and not chances:
        return Parity(FAILED, abs(stride - 1), f"each update is {stride:.5g} times as large as the baseline's")
    sentence = _sentence(ranked, verdict, noise)
    if chance:
        sentence += f"; the program is not deterministic: two runs of it differ by {chance:.1g}"
    elif verdict == REASSOCIATED and worst.value > LIMITS[worst.kind].after(worst.steps)[0]:
        sentence += f"; where each weight begins some roundings apart, {worst.kind} differ by as much as"
        sentence += f" {noise[worst.key] / WIDER:.1g}"
    return Parity(verdict, worst.value, sentence)


def _allowed(one: Deviation, noise: Noise) -> tuple[float, float]:
    rounding, precision = LIMITS[one.kind].after(one.steps)
    chance = noise.get(one.key, 0.0)
    return max(rounding, chance), max(precision, chance)


def _verdict(one: Deviation, noise: Noise) -> Agreement:
    rounding, precision = _allowed(one, noise)
    if one.value == 0.0:
        return EXACT
    return REASSOCIATED if one.value <= rounding else PRECISION if one.value <= precision else FAILED


def _severity(one: Deviation, noise: Noise) -> tuple[int, float]:
    return ORDER.index(_verdict(one, noise)), one.value / _allowed(one, noise)[0]


def _sentence(ranked: list[Deviation], verdict: str, noise: Noise) -> str:
    parts = []
    for kind in LIMITS:
        mine = [one for one in ranked if one.kind == kind]
        if not mine:
            continue
        worst = mine[-1]
        apart = verdict == FAILED and (worst is ranked[-1] or _verdict(worst, noise) == FAILED)
        if kind == "weights":
            last = max(one.steps for one in mine)
            if worst.value == 0.0:
                parts.append(f"weights after {_steps(last)} are the same")
            else:
                of = " of their movement"
                how = f"differ {by(worst.value, of)}" if apart else f"agree to {worst.value:.1g}{of}"
                parts.append(f"weights after {_steps(worst.steps)} {how}")
        else:
            parts.append(f"{_many(len(mine), kind)} {_how(len(mine), worst, apart)}")
    return "; ".join(parts)


def _many(count: int, kind: str) -> str:
    return f"1 {'loss' if kind == 'losses' else 'output'}" if count == 1 else f"{count} {kind}"


def _how(count: int, worst: Deviation, apart: bool) -> str:
    one = count == 1
    if worst.value == 0.0:
        return "is the same" if one else "are the same"
    if not apart:
        return f"{'agrees' if one else 'agree'} to {worst.value:.1g}"
    at = f" at step {worst.steps}" if worst.kind == "losses" else ""
    return f"{'differs' if one else 'differ'} {by(worst.value)}{at}"


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"
