"""Copies of a pipeline, with caches and shuffles of their own: whole, shortened, or unshuffled.

Measurements and comparisons run on copies, so that they leave the program's own dataset as it was: its shuffles have
drawn nothing, and its caches hold nothing that the program did not read itself.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from flatout.observe import stages
from flatout.pipeline import recipes

READERS = ("TensorSlice", "Tensor", "Range", "List", "TFRecord", "TextLine", "FixedLengthRecord", "Csv", "FlatMap",
           "Interleave", "ParallelInterleave", "Generator")  # fmt: skip
"""Stages that make records from nothing or from file names; the first ones of a pipeline."""


SMALL_SHUFFLE = 32


def fresh(dataset: Any, change: Callable[[Any, Any], Any] | None = None) -> Any:
    """A copy of the whole pipeline.

    `change(stage, made)` may return a dataset to use instead of `made`, the copy of a stage. Caches in the program's
    own files are left out: a copy must not write there.
    """
    done: dict[int, Any] = {}

    def copied(stage: Any) -> Any:
        stage = stages.plain(stage)
        if id(stage) not in done:
            inputs = recipes.upstream(stage)
            if not inputs or not makeable(stage):
                made = stage
            elif stages.kind(stage) == "Cache" and stages.setting(stage, "_filename"):
                made = _cache_copy(stage, copied(inputs[0]))
            else:
                made = recipes.replay_once(stage, {id(before): copied(before) for before in inputs})
            other = change(stage, made) if change is not None else None
            done[id(stage)] = made if other is None else other
        return done[id(stage)]

    return copied(dataset)


def _cache_copy(stage: Any, source: Any) -> Any:
    """A cache on disk that a rewrite made gets a file of its own; one of the program's own is left out."""
    directory = getattr(stage, "_flatout_disk", None)
    if directory is None:
        return source
    folder = tempfile.mkdtemp(prefix="flatout-copy-", dir=directory)
    _folders.append(folder)
    return source.cache(os.path.join(folder, "elements"))


_folders: list[str] = []


@contextlib.contextmanager
def files_of_copies() -> Iterator[None]:
    """Remove the files that copies have written meanwhile."""
    try:
        yield
    finally:
        while _folders:
            shutil.rmtree(_folders.pop(), ignore_errors=True)


def makeable(stage: Any) -> bool:
    return recipes.recipe_of(stage) is not None or stages.kind(stage) == "Zip"


def limited(dataset: Any, count: int) -> Any:
    """A copy that reads only `count` records in each branch."""
    cut = {id(stage) for stage in record_stages(dataset)}
    return fresh(dataset, lambda stage, made: made.take(count) if id(stage) in cut else None)


def record_stages(dataset: Any) -> list[Any]:
    """The last of the reading stages at the head of each branch."""
    known: dict[int, list[Any]] = {}

    def found(stage: Any) -> list[Any]:
        if id(stage) not in known:
            inputs = recipes.upstream(stage)
            heads = list({id(head): head for before in inputs for head in found(before)}.values())
            reads = len(inputs) == 1 and stages.kind(stage) in READERS and heads == inputs
            known[id(stage)] = [stage] if reads or not heads else heads
        return known[id(stage)]

    return found(stages.plain(dataset))


def unshuffled(dataset: Any, seeded: bool = False) -> Any:
    """A finite copy without the shuffles that have no seed; `seeded`: without the others too."""

    def change(stage: Any, made: Any) -> Any:
        if is_unseeded(stage) or (seeded and stages.kind(stage) == "Shuffle"):
            return recipes.upstream(made)[0]
        if stages.kind(stage) == "Repeat" and (stages.setting(stage, "_count") or -1) < 0:
            return recipes.replay_once(made, {}, {"count": 2})
        return None

    return fresh(dataset, change)


def soon(dataset: Any) -> Any:
    """A copy with small shuffle buffers, whose first element does not wait for a large one to fill."""

    def change(stage: Any, made: Any) -> Any:
        large = stages.kind(stage) == "Shuffle" and (stages.setting(stage, "_buffer_size") or 0) > SMALL_SHUFFLE
        return recipes.replay_once(made, {}, {"buffer_size": SMALL_SHUFFLE}) if large else None

    return fresh(dataset, change)


def is_unseeded(stage: Any) -> bool:
    if stages.kind(stage) != "Shuffle":
        return False
    return not stages.setting(stage, "_seed") and not stages.setting(stage, "_seed2")


def before_randomness(dataset: Any) -> Any | None:
    """What enters the first stage that draws random numbers; None where no stage does."""
    found = None
    for stage in recipes.main_line(dataset):
        if stages.draws(stage):
            found = recipes.upstream(stage)[0]
    return found
