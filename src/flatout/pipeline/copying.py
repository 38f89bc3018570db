"""Copies of a pipeline that the program does not share: with caches and shuffles of their own, shorter, unshuffled.

What is measured or compared runs on copies, so that the program's own dataset is afterwards as far as it was before:
its shuffles have drawn nothing and its caches hold nothing that it did not read itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flatout.pipeline import recipes, stages

READERS = ("TensorSlice", "Tensor", "Range", "List", "TFRecord", "TextLine", "FixedLengthRecord", "Csv", "FlatMap",
           "Interleave", "ParallelInterleave", "Generator")  # fmt: skip
"""Stages that make records out of nothing or out of names; the first ones of a pipeline."""


def fresh(dataset: Any, change: Callable[[Any, Any], Any] | None = None) -> Any:
    """The whole pipeline made anew.

    `change(stage, made)` may answer with what stands in the place of `made`, the copy of a stage. A cache in a file is
    left out: a copy must not write what belongs to the program.
    """
    done: dict[int, Any] = {}

    def copied(stage: Any) -> Any:
        stage = stages.plain(stage)
        if id(stage) not in done:
            inputs = recipes.upstream(stage)
            if not inputs or not makeable(stage):
                made = stage
            elif stages.kind(stage) == "Cache" and stages.setting(stage, "_filename"):
                made = copied(inputs[0])
            else:
                made = recipes.replay_once(stage, {id(before): copied(before) for before in inputs})
            other = change(stage, made) if change is not None else None
            done[id(stage)] = made if other is None else other
        return done[id(stage)]

    return copied(dataset)


def makeable(stage: Any) -> bool:
    return recipes.recipe_of(stage) is not None or stages.kind(stage) == "Zip"


def limited(dataset: Any, count: int) -> Any:
    """A copy that reads only so many records: each branch is cut where its records begin."""
    cut = {id(stage) for stage in record_stages(dataset)}
    return fresh(dataset, lambda stage, made: made.take(count) if id(stage) in cut else None)


def record_stages(dataset: Any) -> list[Any]:
    """The last of the reading stages at the head of each branch."""
    stage = stages.plain(dataset)
    found = [item for before in recipes.upstream(stage) for item in record_stages(before)]
    if not found:
        return [stage]
    if len(recipes.upstream(stage)) == 1 and stages.kind(stage) in READERS and found == [recipes.upstream(stage)[0]]:
        return [stage]
    return found


def unshuffled(dataset: Any) -> Any:
    """A copy without the shuffles that give another order each time; those with a seed stay."""
    return fresh(dataset, lambda stage, made: recipes.upstream(made)[0] if is_unseeded(stage) else None)


def is_unseeded(stage: Any) -> bool:
    if stages.kind(stage) != "Shuffle":
        return False
    return not stages.setting(stage, "_seed") and not stages.setting(stage, "_seed2")


def before_randomness(dataset: Any) -> Any | None:
    """What enters the first stage that draws random numbers; None where no stage does."""
    found = None
    for stage in recipes.main_line(dataset):
        if "random" in stages.states(stage):
            found = recipes.upstream(stage)[0]
    return found
