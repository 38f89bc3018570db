"""`parallel-map` on a dataset: maps that keep state make several calls at once; those that wait get threads for it.

TensorFlow makes stateless maps parallel by itself. With random numbers or Python code, the order of the calls changes:
semantic, and made only where that is allowed. The elements keep their order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flatout.cures.threadpool import SETTING as THREADS
from flatout.observe import stages
from flatout.pipeline import options, recipes
from flatout.pipeline.rewriting import Context, Proposal, Refused

CALLS_THAT_WAIT = 16


def rewrite(dataset: Any, context: Context) -> Proposal | None:
    import tensorflow as tf

    found = serial_maps(dataset)
    stateful = [stage for stage in found if stages.states(stage)]
    if not found:
        return None
    if stateful and "semantic" not in context.allow:
        state = stages.states(stateful[0])[0]
        raise Refused(
            f"the map at {stages.location(stateful[0])} makes one call at a time, as it keeps state ({state}); several "
            "at once are a semantic change, which has to be allowed"
        )
    waiting = [stage for stage in found if context.waits(stage)]

    def calls(stage: Any) -> int:
        return CALLS_THAT_WAIT if any(stage is other for other in waiting) else int(tf.data.AUTOTUNE)

    result, what = with_calls(dataset, found, calls)
    if waiting:
        result = options.changed(result, {THREADS: CALLS_THAT_WAIT})
        what += f", {CALLS_THAT_WAIT} threads for those that wait"
    return Proposal(result, what, equivalence="semantic" if stateful else "exact")


def serial_maps(dataset: Any) -> list[Any]:
    """Maps with state, and maps that are set to make one call at a time; not those that are `synchronous`."""
    return [stage for stage, _ in stages.chain(dataset) if _is_serial(stage)]


def _is_serial(stage: Any) -> bool:
    recipe = recipes.recipe_of(stage)
    if recipe is None or recipe.method != "map":
        return False
    if stages.kind(stage) == "Map":
        return bool(stages.states(stage)) and not recipe.arguments.get("synchronous")
    return stages.kind(stage) == "ParallelMap" and stages.setting(stage, "_num_parallel_calls") == 1


def with_calls(
    dataset: Any, maps: Sequence[Any], calls: Callable[[Any], int], replay: recipes.Replay = recipes.replay_once
) -> tuple[Any, str]:
    """The dataset whose maps make so many calls at once, and what was changed in words."""
    chosen = {id(stage) for stage in maps}

    def parallel(stage: Any) -> Any:
        if id(stage) not in chosen:
            return None
        before = recipes.upstream(stage)[0]
        inputs = {id(before): recipes.rebuild(before, parallel)}
        return replay(stage, inputs, {"num_parallel_calls": calls(stage)})

    names = " and ".join(_described(stage) for stage in reversed(maps))
    return recipes.rebuild(dataset, parallel), f"several calls at once in the map at {names}"


def _described(stage: Any) -> str:
    states = stages.states(stage)
    return f"{stages.location(stage)} ({states[0]})" if states else stages.location(stage)
