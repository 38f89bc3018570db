"""A cache behind the part of a pipeline that gives the same elements in every epoch, in memory or on disk.

As far down as possible, where the most work is saved. Where that does not fit into the memory, it goes further up,
where elements may be smaller: bytes before they are floats, files before they are pictures.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import Any

from flatout.observe import stages
from flatout.pipeline import caching, recipes
from flatout.pipeline.caching import mib
from flatout.pipeline.rewriting import Context, Proposal, Refused


def rewrite(dataset: Any, context: Context) -> Proposal | None:
    last, reason = caching.last_cacheable(dataset)
    if last is None:
        if reason and not reason.startswith("nothing"):
            raise Refused(f"nothing can be cached: {reason}")
        return None
    sizes: list[tuple[Any, int]] = []
    for stage in _worth_caching(last):
        sizes.append((stage, _bytes(stage, context)))
        if sizes[-1][1] <= context.memory:
            break
    stage, size = sizes[-1] if sizes[-1][1] <= context.memory else sizes[0]
    place = f"behind {stages.kind(stage).lower()} at {stages.place(stage)}"
    if size <= context.memory:
        cached, what = stage.cache(), f"a cache of {mib(size)} {place}"
    elif context.disk is not None and size <= _free(context.disk):
        file = os.path.join(tempfile.mkdtemp(prefix="flatout-cache-", dir=context.disk), "elements")
        cached, what = stage.cache(file), f"a cache of {mib(size)} on disk ({file}) {place}"
        cached._flatout_disk = context.disk
    else:
        raise Refused(f"a cache {place} would hold {mib(size)}, and {mib(context.memory)} of memory are to be had")
    result = recipes.rebuild(dataset, recipes.exchange(stage, recipes.stands_for(cached, stage)))
    if stages.runs_python(stage):
        what += "; Python code before it is taken to give the same elements in each epoch"
    return Proposal(result, what)


def _worth_caching(last: Any) -> Iterator[Any]:
    """The last stage that can be cached, then those before it that still save work."""
    for stage in recipes.main_line(last):
        if not caching.costs(stage):
            return
        if stages.kind(stage) not in caching.NOT_KEPT and caching.can_be_held(stage.element_spec):
            yield stage


def _bytes(stage: Any, context: Context) -> int:
    size = caching.known_bytes(stage)
    if size is not None:
        return size
    count, cost = context.count(stage), context.cost(stage)
    if count is None or cost is None:
        raise Refused(f"how much a cache behind {stages.place(stage)} would hold could not be found out in time")
    return count * cost.bytes


def _free(directory: str) -> int:
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize // 2
