"""`cache` on a dataset: in memory or on disk, behind the part that yields the same elements in every epoch.

It goes behind the last stage possible, where it saves most work. If that does not fit into memory, an earlier stage is
tried, whose elements may be smaller: bytes before they become floats, files before they become pictures.
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
    where = f"behind {stages.kind(stage).lower()} at {stages.location(stage)}"
    if size <= context.memory:
        cached, what = stage.cache(), f"a cache of {mib(size)} {where}"
    elif context.disk is not None and size <= _free(context.disk):
        file = os.path.join(tempfile.mkdtemp(prefix="flatout-cache-", dir=context.disk), "elements")
        cached, what = stage.cache(file), f"a cache of {mib(size)} on disk ({file}) {where}"
        cached._flatout_disk = context.disk
    else:
        raise Refused(f"a cache {where} would hold {mib(size)}, and {mib(context.memory)} of memory are available")
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
        raise Refused(f"how much a cache behind {stages.location(stage)} would hold could not be measured in time")
    return count * cost.bytes


def _free(directory: str) -> int:
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize // 2
