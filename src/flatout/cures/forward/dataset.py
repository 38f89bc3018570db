"""Filters and takes are moved towards the source, so that less is computed for what is thrown away.

A filter goes before a stateless map if all it looks at passes through that map unchanged. A take goes before maps,
prefetches and caches: a cache that is never read to its end is never complete, one of the taken elements is.
"""

from __future__ import annotations

from typing import Any

from flatout.cures.tidy.dataset import source_of
from flatout.observe import stages
from flatout.pipeline import recipes
from flatout.pipeline.rewriting import Context, Proposal

MAPS = ("Map", "ParallelMap")
MOST_MOVES = 12


def rewrite(dataset: Any, context: Context) -> Proposal | None:
    moved: list[str] = []

    def forward(stage: Any) -> Any:
        for move in (_take, _filter):
            found = move(stage)
            if found is not None and len(moved) < MOST_MOVES:
                moved.append(f"{stages.kind(stage).lower()} at {stages.location(stage)}")
                return recipes.rebuild(found, forward)
        return None

    result = recipes.rebuild(dataset, forward)
    return Proposal(result, f"moved forward: {', '.join(dict.fromkeys(moved))}") if moved else None


def _before(stage: Any) -> Any | None:
    """The stage that this one stands behind, if both are understood and it is the only one."""
    inputs = recipes.upstream(stage)
    if len(inputs) != 1 or len(recipes.upstream(inputs[0])) != 1 or recipes.recipe_of(inputs[0]) is None:
        return None
    return inputs[0]


def _take(stage: Any) -> Any | None:
    before = _before(stage) if stages.kind(stage) == "Take" else None
    if before is None:
        return None
    kind = stages.kind(before)
    memory = kind == "Cache" and not stages.setting(before, "_filename")
    if not memory and not (kind in (*MAPS, "Prefetch") and not stages.states(before)):
        return None
    source = recipes.upstream(before)[0]
    taken = recipes.replay_once(stage, {id(before): source})
    return recipes.replay_once(before, {id(source): taken})


def _filter(stage: Any) -> Any | None:
    before = _before(stage) if stages.kind(stage) == "Filter" else None
    if before is None or stages.kind(before) not in MAPS or stages.states(before) or stages.states(stage):
        return None
    earlier = _earlier_predicate(stage, before)
    if earlier is None:
        return None
    source = recipes.upstream(before)[0]
    kept = recipes.stands_for(source.filter(earlier), stage)
    return recipes.replay_once(before, {id(source): kept})


def _earlier_predicate(stage: Any, before: Any) -> Any | None:
    """The predicate as a function of what enters the map; None where it looks at something that the map makes."""
    import tensorflow as tf
    from tensorflow.python.data.util import structure

    predicate, mapped = stage._predicate, before._map_func.function.graph
    inside = mapped.inputs[: len(mapped.inputs) - len(mapped.captures)]  # behind them stands what the map holds
    entering = {tensor.name: position for position, tensor in enumerate(inside)}
    origins = [entering.get(source_of(tensor).name) for tensor in mapped.outputs]
    looked_at = predicate.function.graph.inputs[: len(origins)]
    read = _read(predicate.function.graph)
    if any(tensor.name in read and origin is None for tensor, origin in zip(looked_at, origins, strict=True)):
        return None

    def earlier(*element: Any) -> Any:
        flat = _flat(element, before._map_func._input_structure)
        values = [
            flat[origin] if tensor.name in read and origin is not None else _unread(tensor)
            for tensor, origin in zip(looked_at, origins, strict=True)
        ]
        given = structure.from_compatible_tensor_list(predicate._input_structure, values)
        return predicate._func(*given) if type(given) is tuple else predicate._func(given)

    def _unread(tensor: Any) -> Any:
        sizes = tensor.shape.as_list() if tensor.shape.rank is not None else []
        return tf.zeros([size or 0 for size in sizes], tensor.dtype)

    return earlier


def _flat(element: tuple[Any, ...], structure: Any) -> list[Any]:
    from tensorflow.python.data.util import structure as structures

    return list(structures.to_tensor_list(structure, element if isinstance(structure, tuple) else element[0]))


def _read(graph: Any) -> set[str]:
    """The tensors that any op of a graph reads, or that leave it."""
    read = {tensor.name for op in graph.get_operations() for tensor in op.inputs}
    return read | {tensor.name for tensor in graph.outputs}
