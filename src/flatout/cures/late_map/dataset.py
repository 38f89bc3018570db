"""Maps before a shuffle go behind it, and behind the batch that follows: whole batches, small types to the last moment.

`map(to_float).shuffle(n).batch(m)` holds and copies floats, one call for each; `shuffle(n).batch(m).map(to_float)`
holds and copies the bytes that were there before. A shuffle moves elements whatever they are, so that only the batch
needs a comparison.
"""

from __future__ import annotations

from typing import Any

from flatout.observe import stages
from flatout.pipeline import recipes, vectorization
from flatout.pipeline.rewriting import Context, Proposal, Refused

PASSED = ("Shuffle", "Prefetch", "Repeat")


def rewrite(dataset: Any, context: Context) -> Proposal | None:
    line = list(recipes.main_line(dataset))
    for position, batch in enumerate(line):
        recipe = recipes.recipe_of(batch)
        if recipe is None or recipe.method != "batch":
            continue
        passed = _leading(line[position + 1 :], lambda stage: stages.kind(stage) in PASSED)
        maps = _leading(line[position + 1 + len(passed) :], _is_plain_map)
        if maps and any(stages.kind(stage) == "Shuffle" for stage in passed):
            return _moved(dataset, maps[::-1], passed[::-1], batch, context)
    return None


def _moved(dataset: Any, maps: list[Any], passed: list[Any], batch: Any, context: Context) -> Proposal:
    where = stages.location(maps[-1])
    try:
        batches, exact = vectorization.compared(_behind(maps, passed, batch), again=True)
    except vectorization.Unlike as unlike:
        if len(maps) > 1:  # the first may have no form for batches (decoding an image), and those behind it have one
            return _moved(dataset, maps[1:], passed, batch, context)
        raise Refused(f"the map at {where} cannot go behind the shuffle and the batch: {unlike}") from None
    if not exact and "reassociated" not in context.allow:
        raise Refused(f"the map at {where} rounds differently on batches")
    result = recipes.rebuild(dataset, recipes.exchange(batch, batches))
    return Proposal(result, f"the map at {where} goes behind shuffle and batch")


def _behind(maps: list[Any], passed: list[Any], batch: Any) -> vectorization.LateBatch:
    """The same stages in another order: what is passed first, then the maps, then the batch."""
    made = recipes.upstream(maps[0])[0]
    for stage in passed:
        made = recipes.replay_once(stage, {id(recipes.upstream(stage)[0]): made})
    late = []
    for stage in maps:
        made = recipes.replay_once(stage, {id(recipes.upstream(stage)[0]): made})
        late.append(made)
    return vectorization.LateBatch(tuple(late), batch)


def _leading(line: list[Any], fits: Any) -> list[Any]:
    found = []
    for stage in line:
        if not fits(stage):
            break
        found.append(stage)
    return found


def _is_plain_map(stage: Any) -> bool:
    recipe = recipes.recipe_of(stage)
    known = recipe is not None and recipe.method == "map" and stages.kind(stage) in vectorization.MAPS
    return known and not stages.states(stage)
