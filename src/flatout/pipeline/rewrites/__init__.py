"""Rewrites of a pipeline, one file each, in the order in which they are tried.

A rewrite is a module with

    NAME          as it stands in a Trial; the lever's name where a lever of `flatout tune` does the same
    EQUIVALENCE   what it may do to the elements: exact, or semantic where it has to be allowed first
    rewrite       `rewrite(dataset, room)`: a Proposal, or None where there is nothing to change

None of them decides whether it pays or whether the elements stay the same: each proposal is raced and compared. The
levers of `flatout tune` share what they are made of: `recipes`, `caching`, `vectorizing`.
"""

from __future__ import annotations

from types import ModuleType

from flatout.pipeline.rewrites import (
    autotune,
    cache,
    crop,
    forward,
    generator,
    late_map,
    parallel_map,
    prefetch,
    reads,
    threadpool,
    tidy,
    vectorize,
)

REWRITES: tuple[ModuleType, ...] = (
    autotune,
    tidy,
    forward,
    crop,
    reads,
    generator,
    late_map,
    vectorize,
    parallel_map,
    threadpool,
    cache,
    prefetch,
)
"""What changes the stages comes before what changes how they run; a cache keeps what all the others have made."""
