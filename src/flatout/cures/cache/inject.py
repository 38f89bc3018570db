"""`cache` in a running program."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._spec import Hooks
from flatout.observe import stages
from flatout.observe.injection import Injection
from flatout.pipeline import caching, iteration, recipes
from flatout.pipeline.caching import mib
from flatout.pipeline.rewriting import Proposal

COMPARED_SECONDS = 4.0
"""For so long the second pass of Python code is held against the first, once the cache is full."""
NEVER_COMPLETE = 5
"""Iterators of which none has reached the end: the program reads a part of its data only, and no cache gets full."""


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    promised = [0]
    compared: set[int] = set()
    """Caches whose elements were held against those of a second pass."""

    def rewrite(dataset: Any, iterated: iteration.Iterated) -> Proposal | None:
        if stages.from_arrays(dataset):
            return None
        stage, reason = caching.last_cacheable(dataset)
        if stage is None:
            injection.note(f"nothing to cache: {reason}")
            return None
        cached = getattr(stage, "_flatout_cached", None)  # a program may build on one stage anew in each epoch
        if cached is None:
            limit = max(caching.memory_limit() - promised[0], 0)
            size = caching.known_bytes(stage)
            if size is not None and size > limit:
                injection.note(f"{stages.location(stage)}: {mib(size)} to keep, {mib(limit)} to keep them in")
                return None
            promised[0] += size or 0
            cached = stage._flatout_cached = caching.Cached(stage, limit)
        result = recipes.rebuild(dataset, recipes.exchange(stage, recipes.stands_for(cached.dataset, stage)))
        injection.ready.append(lambda: _full(injection, cached, iterated))
        if stages.runs_python(stage):
            injection.ready.append(lambda: _compared(injection, cached, stages.location(stage), compared))
            injection.note("Python code stands before the cache: a second pass of it is compared with the first")
        return Proposal(result, f"a cache behind {stages.kind(stage).lower()} at {stages.location(stage)}")

    iteration.rewrite_with(injection, rewrite)


def _full(injection: Injection, cached: Any, iterated: Any) -> bool:
    if cached.passes:
        if cached.overflown:
            injection.note(f"the cache holds only what fits into {mib(cached.limit)}, a third of the free memory")
        return True
    if iterated.opened >= NEVER_COMPLETE:
        injection.note("the program never reads its data to the end, so the cache does not get full")
        return True
    return not iterated.alive  # the program only had a look at it: nobody fills this cache


def _compared(injection: Injection, cached: Any, where: str, done: set[int]) -> bool:
    """Once there is a whole pass: whether Python code gives the same elements in another."""
    if cached.passes and id(cached) not in done:
        done.add(id(cached))
        try:
            with iteration.unseen():
                different = cached.differs(COMPARED_SECONDS)
        except Exception as error:  # it cannot be iterated twice: that is a difference as well
            different = f"{type(error).__name__}: {str(error)[:200]}"
        if different:
            injection.give_up(f"a second pass of the Python code before {where} differs from the first: {different}")
    return True


HOOKS = Hooks(tensorflow=on_tensorflow)
