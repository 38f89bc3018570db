"""How fast models answer, side by side: rounds in which each is called, and the interval of their ratio."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flatout.measure.interval import paired_ratio
from flatout.model.case import Interval
from flatout.optimize.compress import checks, graph

ROUND_SECONDS = 0.02
"""Calls are repeated until a round is that long: the clock and the scheduler weigh little against it."""


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


def side_by_side(before: Callable[[], Any], after: Callable[[], Any], rounds: int = 15) -> Interval:
    """How many times faster `after` is: interleaved rounds, order turned each time."""
    slow, fast = rounds_of([before, after], rounds)
    return paired_ratio(slow, fast)


def rounds_of(calls: Sequence[Callable[[], Any]], rounds: int = 15) -> list[list[float]]:
    """Milliseconds per call of each, round by round."""
    repeats = []
    for call in calls:
        for _ in range(3):
            call()
        begun = time.perf_counter()
        call()
        repeats.append(max(1, int(ROUND_SECONDS / max(time.perf_counter() - begun, 1e-6))))
    times: list[list[float]] = [[] for _ in calls]
    for number in range(rounds):
        order = list(range(len(calls)))
        for place in order if number % 2 == 0 else reversed(order):
            begun = time.perf_counter()
            for _ in range(repeats[place]):
                calls[place]()
            times[place].append((time.perf_counter() - begun) / repeats[place] * 1000)
    return times
