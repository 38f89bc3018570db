"""A prefetch of tunable size at the end, where TensorFlow adds none and the pipeline has none."""

from __future__ import annotations

from typing import Any

from flatout.cures._dataset import Proposal, Room
from flatout.observe import stages
from flatout.pipeline import recipes

NAME = "prefetch"
EQUIVALENCE = "exact"

AHEAD = ("Parallel", "Prefetch")
SMALL = 1


def rewrite(dataset: Any, room: Room) -> Proposal | None:
    import tensorflow as tf

    last = next(stage for stage in recipes.main_line(dataset) if stages.kind(stage) != "Options")
    if stages.kind(last) == "Prefetch":
        buffer = stages.setting(last, "_buffer_size")
        if buffer is None or buffer > SMALL or buffer == tf.data.AUTOTUNE:
            return None
        tuned = recipes.replay_once(last, {}, {"buffer_size": tf.data.AUTOTUNE})
        what = f"the prefetch of {buffer} at {stages.place(last)} made tunable"
        return Proposal(recipes.rebuild(dataset, recipes.exchange(last, tuned)), what)
    options = dataset.options()
    off = options.autotune.enabled is False or options.experimental_optimization.apply_default_optimizations is False
    injected = not off and options.experimental_optimization.inject_prefetch is not False
    if injected or stages.kind(last).startswith(AHEAD):
        return None
    return Proposal(dataset.prefetch(tf.data.AUTOTUNE), f"a prefetch behind {stages.place(last)}")
