"""Stages that only copy are dropped: a map that changes nothing, a second prefetch or cache, batches undone."""

from __future__ import annotations

from typing import Any

from flatout.observe import stages
from flatout.pipeline import recipes
from flatout.pipeline.rewriting import Context, Proposal

TWICE = ("Prefetch", "Cache")
NOTHING = {"Placeholder", "Identity", "NoOp", "IdentityN"}


def rewrite(dataset: Any, context: Context) -> Proposal | None:
    dropped: list[str] = []

    def tidied(stage: Any) -> Any:
        for before in (_without(stage), _unbatched(stage)):
            if before is not None:
                dropped.append(f"{stages.kind(stage).lower()} at {stages.location(stage)}")
                return recipes.rebuild(before, tidied)
        return None

    result = recipes.rebuild(dataset, tidied)
    return Proposal(result, f"dropped: {', '.join(dropped)}") if dropped else None


def _without(stage: Any) -> Any | None:
    """What comes before a stage that changes nothing."""
    inputs = recipes.upstream(stage)
    if len(inputs) != 1:
        return None
    kind, before = stages.kind(stage), inputs[0]
    if kind in TWICE and stages.kind(before) == kind and not stages.setting(stage, "_filename"):
        return before
    if kind == "Repeat" and stages.setting(stage, "_count") == 1:
        return before
    return before if kind in ("Map", "ParallelMap") and _changes_nothing(stage, before) else None


def _changes_nothing(stage: Any, before: Any) -> bool:
    if stage.element_spec != before.element_spec or set(stages.ops_of(stage._map_func)) - NOTHING:
        return False
    graph = stage._map_func.function.graph
    return [source_of(tensor).name for tensor in graph.outputs] == [tensor.name for tensor in graph.inputs]


def source_of(tensor: Any) -> Any:
    """The tensor that an identity hands on."""
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    return tensor


def _unbatched(stage: Any) -> Any | None:
    """`batch(n).unbatch()` is what was there before, where no element is lost."""
    if stages.kind(stage) != "Unbatch":
        return None
    batch = recipes.upstream(stage)[0]
    if stages.kind(batch) not in ("Batch", "ParallelBatch") or stages.setting(batch, "_drop_remainder") is not False:
        return None
    before = recipes.upstream(batch)[0]
    return before if before.element_spec == stage.element_spec else None
