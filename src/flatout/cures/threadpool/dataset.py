"""`threadpool` on a dataset: a pipeline whose maps wait gets threads of its own."""

from __future__ import annotations

from typing import Any

from flatout.cures.threadpool import MOST, SETTING, SIZES
from flatout.observe import stages
from flatout.pipeline import options
from flatout.pipeline.rewriting import Context, Proposal


def rewrite(dataset: Any, context: Context) -> Proposal | None:
    parallel = [stage for stage, _ in stages.chain(dataset) if _makes_calls_at_once(stage)]
    waiting = [stage for stage in parallel if context.waits(stage)]
    if not waiting:
        return None
    calls = max((stages.setting(stage, "_num_parallel_calls") or 0 for stage in waiting), default=0)
    size = min(max(calls, int(SIZES[0])), MOST)
    if (options.value(dataset, SETTING) or 0) >= size:
        return None
    what = f"{size} threads, as the map at {stages.location(waiting[0])} waits"
    return Proposal(options.changed(dataset, {SETTING: size}), what, setting=str(size))


def _makes_calls_at_once(stage: Any) -> bool:
    kind = stages.kind(stage)
    return kind == "ParallelMap" or (kind == "Map" and not stages.states(stage)) or kind == "ParallelInterleave"
