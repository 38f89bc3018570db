"""A pipeline whose maps wait gets threads of its own: TensorFlow's pool has about as many as there are cores."""

from __future__ import annotations

from typing import Any

from flatout.cures._dataset import Proposal, Room
from flatout.observe import stages

NAME = "threadpool"
EQUIVALENCE = "exact"

SIZE, MOST = 16, 128


def rewrite(dataset: Any, room: Room) -> Proposal | None:
    import tensorflow as tf

    parallel = [stage for stage, _ in stages.chain(dataset) if _makes_calls_at_once(stage)]
    waiting = [stage for stage in parallel if room.waits(stage)]
    if not waiting:
        return None
    asked = max((stages.setting(stage, "_num_parallel_calls") or 0 for stage in waiting), default=0)
    size = min(max(asked, SIZE), MOST)
    if (dataset.options().threading.private_threadpool_size or 0) >= size:
        return None
    options = tf.data.Options()
    options.threading.private_threadpool_size = size
    what = f"{size} threads, as the map at {stages.place(waiting[0])} waits"
    return Proposal(dataset.with_options(options), what, setting=str(size))


def _makes_calls_at_once(stage: Any) -> bool:
    kind = stages.kind(stage)
    return kind == "ParallelMap" or (kind == "Map" and not stages.states(stage)) or kind == "ParallelInterleave"
