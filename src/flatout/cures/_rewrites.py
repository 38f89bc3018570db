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

from flatout.cures.autotune import dataset as autotune
from flatout.cures.cache import dataset as cache
from flatout.cures.crop import dataset as crop
from flatout.cures.forward import dataset as forward
from flatout.cures.generator import dataset as generator
from flatout.cures.late_map import dataset as late_map
from flatout.cures.parallel_map import dataset as parallel_map
from flatout.cures.prefetch import dataset as prefetch
from flatout.cures.reads import dataset as reads
from flatout.cures.threadpool import dataset as threadpool
from flatout.cures.tidy import dataset as tidy
from flatout.cures.vectorize_map import dataset as vectorize

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
