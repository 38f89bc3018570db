"""A cache behind the part of a pipeline that gives the same elements in every epoch, in memory or on disk."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from flatout.pipeline import caching, recipes, stages
from flatout.pipeline.rewrites.room import Proposal, Room, Unfit

NAME = "cache"
EQUIVALENCE = "exact"


def rewrite(dataset: Any, room: Room) -> Proposal | None:
    stage, reason = caching.last_cacheable(dataset)
    if stage is None:
        if reason and not reason.startswith("nothing"):
            raise Unfit(f"nothing can be cached: {reason}")
        return None
    size = caching.known_bytes(stage)
    if size is None:
        count, cost = room.count(stage), room.cost(stage)
        if count is None or cost is None:
            raise Unfit(f"how much a cache behind {stages.place(stage)} would hold could not be found out in time")
        size = count * cost.bytes
    place = f"behind {stages.kind(stage).lower()} at {stages.place(stage)}"
    if size <= room.memory:
        cached, what = stage.cache(), f"a cache of {_mib(size)} {place}"
    elif room.disk is not None and size <= _free(room.disk):
        file = os.path.join(tempfile.mkdtemp(prefix="flatout-cache-", dir=room.disk), "elements")
        cached, what = stage.cache(file), f"a cache of {_mib(size)} on disk ({file}) {place}"
        cached._flatout_disk = room.disk
    else:
        raise Unfit(f"a cache {place} would hold {_mib(size)}, and {_mib(room.memory)} of memory are to be had")
    result = recipes.rebuild(dataset, recipes.exchange(stage, recipes.stands_for(cached, stage)))
    if any("python" in stages.states(before) for before, _ in stages.chain(stage)):
        what += "; Python code before it is taken to give the same elements in each epoch"
    return Proposal(result, what)


def _free(directory: str) -> int:
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize // 2


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"
