"""Maps that keep state make several calls at once; those that wait get threads for it.

TensorFlow makes stateless maps parallel by itself. With random numbers or Python code, which call comes when is another
matter then: semantic, and only made where that is allowed. The elements come in their old order.
"""

from __future__ import annotations

from typing import Any

from flatout.cures._dataset import Proposal, Room, Unfit
from flatout.observe import stages
from flatout.pipeline import recipes

NAME = "parallel-map"
EQUIVALENCE = "semantic"

CALLS_THAT_WAIT = 16


def rewrite(dataset: Any, room: Room) -> Proposal | None:
    import tensorflow as tf

    found = [stage for stage, _ in stages.chain(dataset) if _is_serial(stage)]
    kept = [stage for stage in found if stages.states(stage)]
    if not found:
        return None
    if kept and "semantic" not in room.allow:
        state = stages.states(kept[0])[0]
        raise Unfit(
            f"the map at {stages.place(kept[0])} makes one call at a time, as it keeps state ({state}); several at "
            "once are a semantic change, which has to be allowed"
        )
    waiting = [stage for stage in found if room.waits(stage)]
    chosen = {id(stage) for stage in found}

    def parallel(stage: Any) -> Any:
        if id(stage) not in chosen:
            return None
        before = recipes.upstream(stage)[0]
        calls = CALLS_THAT_WAIT if any(stage is other for other in waiting) else tf.data.AUTOTUNE
        inputs = {id(before): recipes.rebuild(before, parallel)}
        return recipes.replay_once(stage, inputs, {"num_parallel_calls": calls, "synchronous": None})

    result = recipes.rebuild(dataset, parallel)
    what = f"several calls at once in the map at {' and '.join(stages.place(stage) for stage in reversed(found))}"
    if waiting:
        options = tf.data.Options()
        options.threading.private_threadpool_size = CALLS_THAT_WAIT
        result = result.with_options(options)
        what += f", {CALLS_THAT_WAIT} threads for those that wait"
    return Proposal(result, what, equivalence="semantic" if kept else "exact")


def _is_serial(stage: Any) -> bool:
    recipe = recipes.recipe_of(stage)
    if recipe is None or recipe.method != "map":
        return False
    if stages.kind(stage) == "Map":
        return bool(stages.states(stage))
    return stages.kind(stage) == "ParallelMap" and stages.setting(stage, "_num_parallel_calls") == 1
