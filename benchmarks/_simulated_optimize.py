"""The claim of `optimize` and its accuracy check, with contestants whose clock and whose answers are made up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from _simulated import STEP_SECONDS, Noise

from flatout.measure.drop import GROUPS
from flatout.measure.race import Race, Rules
from flatout.model.case import Interval
from flatout.optimize import checks
from flatout.optimize.checks import AccuracyBudget, CheckResult
from flatout.optimize.claim import ROUNDS, confirm
from flatout.optimize.contestant import Block, Contestant
from flatout.subject.metric import MetricEvaluator

ACCURACY = 0.9
"""Of the original."""


@dataclass(eq=False)
class Served(Contestant):
    noise: Noise = field(kw_only=True)
    seconds: float = field(default=STEP_SECONDS, kw_only=True)
    effect: float | None = field(default=None, kw_only=True)
    """Of the process that is alive."""

    def run_block(self) -> Block:
        if self.effect is None:
            self.effect = self.noise.random.gauss(0.0, self.noise.process)
        seconds = self.seconds * math.exp(self.effect + self.noise.random.gauss(0.0, self.noise.block))
        return Block([seconds], 1, seconds)

    def close(self) -> None:
        self.effect = None


def claim(noise: Noise, ratio: float, finalists: int = 3) -> Interval:
    """What is published of the fastest of several that are all as fast."""
    candidate: Any = SimpleNamespace(name="one", over="", finite_only=False)
    baselines = [Served(candidate, {}, 1, noise=noise) for _ in range(2)]
    race: Race[Served] = Race(baselines)
    ways = [Served(candidate, {}, 1, noise=noise, seconds=STEP_SECONDS / ratio) for _ in range(finalists)]
    race.run(ways, Rules("all-rounds", ROUNDS, finalists))
    winner = min(ways, key=lambda one: one.call_ms() or math.inf)
    confirm(race, ways, winner)  # type: ignore[arg-type]
    found = race.verdict(winner).speedup
    assert found is not None
    return found


def accuracy_check(chance: np.random.Generator, samples: int, drop: float, churn: float) -> CheckResult:
    """An artefact that is wrong where the original is right in a share `drop + churn` of samples, and right where it
    is wrong in a share `churn`."""
    right = chance.random(samples) < ACCURACY
    turned = chance.random(samples) < np.where(right, (drop + churn) / ACCURACY, churn / (1 - ACCURACY))
    labels = np.ones(samples)
    evaluator = MetricEvaluator(_accuracy, [labels])
    original, given = [right.astype(float)], [(right ^ turned).astype(float)]
    values = {"metric": evaluator.evaluate(given), "original": evaluator.evaluate(original)}
    values |= {"without": evaluator._without(given, GROUPS), "original_without": evaluator._without(original, GROUPS)}
    budget = AccuracyBudget(0.01, "accuracy")
    checked = CheckResult("", 0.99, samples=samples, error=0.01)
    checked = checks.check_metric(checked, values["metric"], values["original"], budget)
    return checks.check_drop_bound(checked, values, budget)


def _accuracy(labels: Sequence[Any], outputs: Sequence[Any]) -> float:
    return float(np.mean(labels[0] == outputs[0]))
