"""`prefetch` on a dataset: a prefetch of tunable size at the end, where there is none or a small one."""

from __future__ import annotations

from typing import Any

from flatout.cures.prefetch import AHEAD, FORBID, SMALL
from flatout.observe import stages
from flatout.pipeline import options, recipes
from flatout.pipeline.rewriting import Context, Proposal


def rewrite(dataset: Any, context: Context) -> Proposal | None:
    return prefetched(dataset)


def prefetched(dataset: Any, replay: recipes.Replay = recipes.replay_once) -> Proposal | None:
    import tensorflow as tf

    last = next(stage for stage in recipes.main_line(dataset) if stages.kind(stage) != "Options")
    if stages.kind(last) == "Prefetch":
        buffer = stages.setting(last, "_buffer_size")
        if buffer is None or buffer > SMALL or buffer == tf.data.AUTOTUNE:
            return None
        tuned = replay(last, {}, {"buffer_size": tf.data.AUTOTUNE})
        what = f"the prefetch of {buffer} at {stages.location(last)} made tunable"
        return Proposal(recipes.rebuild(dataset, recipes.exchange(last, tuned)), what)
    is_injected = not any(options.value(dataset, switch) is False for switch in FORBID)
    if is_injected or stages.kind(last).startswith(AHEAD):
        return None
    return Proposal(dataset.prefetch(tf.data.AUTOTUNE), f"a prefetch added behind {stages.location(last)}")
