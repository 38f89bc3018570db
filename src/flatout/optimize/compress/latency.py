"""Compares the speed of models: a race in this process, in which each is called for a moment in every round."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flatout.measure import race
from flatout.measure.race import Exit, Race, Rules
from flatout.model.case import Interval
from flatout.optimize.compress import checks
from flatout.optimize.compress.structure import graph

BLOCK_SECONDS = 0.02
"""Calls are repeated until a block is that long: the clock and the scheduler weigh little against it."""
ROUNDS = 15
WARM_CALLS = 3


@dataclass(eq=False)
class Call(race.Contestant):
    """A function that is called again and again. Its blocks are too short to tell what other processes had of the
    processors, so no round counts as disturbed."""

    function: Callable[[], Any]
    repeats: int = 1

    @property
    def name(self) -> str:
        return "a model"

    def warm(self) -> None:
        for _ in range(WARM_CALLS):
            self.function()
        began = time.perf_counter()
        self.function()
        self.repeats = max(1, int(BLOCK_SECONDS / max(time.perf_counter() - began, 1e-6)))

    def run_block(self) -> race.Block | Exit | None:
        began, cpu = time.perf_counter(), time.process_time()
        for _ in range(self.repeats):
            self.function()
        return race.Block([time.perf_counter() - began], self.repeats, time.process_time() - cpu)


def compiled(model: Any, batch: int) -> Callable[[], Any]:
    """A call of the model as a tf.function on one fixed batch."""
    import tensorflow as tf
    from keras import tree

    arrays = checks.samples(model, count=batch)
    given = [tf.constant(array) for array in arrays]
    structure = graph.functional(model)._inputs_struct
    function = tf.function(
        lambda *inputs: model(tree.pack_sequence_as(structure, list(inputs)), training=False), autograph=False
    )
    return lambda: [np.asarray(part) for part in tree.flatten(function(*given))]


def side_by_side(before: Callable[[], Any], after: Callable[[], Any]) -> Interval:
    """How many times faster `after` is."""
    base, one = Call(before), Call(after)
    speedup = _raced(base, [one], ROUNDS).verdict(one).speedup
    assert speedup is not None, "all rounds are run, and they are enough for an interval"
    return speedup


def rounds_of(calls: Sequence[Callable[[], Any]], rounds: int = ROUNDS) -> list[list[float]]:
    """Milliseconds per call of each, round by round."""
    everyone = [Call(call) for call in calls]
    _raced(everyone[0], everyone[1:], rounds)
    return [[1e3 * seconds for seconds in one.unit_times() if seconds is not None] for one in everyone]


def _raced(base: Call, others: Sequence[Call], rounds: int) -> Race[Call]:
    for one in (base, *others):
        one.warm()
    found = Race([base])
    found.run(others, Rules("all-rounds", rounds))
    return found
