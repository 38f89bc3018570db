"""`keep-batches` in a running program."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from flatout.cures._keras_arguments import Arguments, caller_location, change_arguments
from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection
from flatout.pipeline import caching
from flatout.source import users_code

COMPARED = 3
"""Batches of the second epoch that are computed again, to see that they are the same."""
OFTEN = 4
"""Times that a batch is asked for before all were: a look at it first, and epochs that take a part of the data only."""


def on_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "fit", lambda: module.utils.PyDataset)


def on_tf_keras(injection: Injection, module: ModuleType) -> None:
    _install(injection, "legacy-fit", lambda: module.utils.Sequence)


def _install(injection: Injection, key: str, kind: Callable[[], Any]) -> None:
    def in_fit(model: Any, arguments: Arguments) -> None:
        data = arguments.get("x")
        if isinstance(data, kind()) and not isinstance(getattr(data, "_flatout_kept", None), Kept):
            _keep(injection, data, caller_location())

    change_arguments(key, in_fit)


def _keep(injection: Injection, data: Any, where: str) -> None:
    """Give this one data set a class of its own, which is as before but for `__getitem__`."""
    if getattr(data, "use_multiprocessing", False):
        injection.note("the batches are made in other processes, which keep nothing for each other")
        return
    kind = type(data)
    count = data.num_batches if hasattr(data, "num_batches") else len(data)
    if count is None:
        injection.note(f"{kind.__name__} has no end: there is nothing to come back to")
        return
    kept = Kept(caching.memory_limit(), count)

    def __getitem__(self: Any, index: Any) -> Any:
        batch = kept.get(index, lambda: kind.__getitem__(self, index))
        if kept.serves:
            injection.changed(f"the batches of {kind.__name__} are kept{where}")
        elif kept.differ:
            injection.note(f"the batches of {kind.__name__} differ from one epoch to the next")
        if kept.serves and users_code.is_users(sys._getframe(1).f_code):
            return _copied(batch)  # the program may change in place what it has taken itself
        return batch

    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    try:
        data.__class__ = type(kind.__name__, (kind,), {**names, "__getitem__": __getitem__, "_flatout_kept": kept})
    except TypeError:
        injection.note(f"{kind.__name__} lets nothing be put into the place of its __getitem__")
        return
    injection.ready.append(lambda: kept.settled)


class Kept:
    """Batches by their number. They are handed out once all were seen, and some were found to be the same again."""

    def __init__(self, limit: int, count: int) -> None:
        self.limit, self.count = limit, count
        self.batches: dict[Any, Any] = {}
        self.asked: Counter[Any] = Counter()
        self.bytes = 0
        self.compared: set[Any] = set()
        self.differ = False
        self.complete = False

    @property
    def serves(self) -> bool:
        kept = len(self.batches)
        return bool(kept) and not self.differ and self.complete and len(self.compared) >= min(COMPARED, kept)

    @property
    def settled(self) -> bool:
        """Whether it is known what becomes of it."""
        return self.serves or self.differ or (self.complete and not self.batches)

    def get(self, index: Any, compute: Callable[[], Any]) -> Any:
        known = self.batches.get(index)
        if known is not None and self.serves:
            return known
        before = self.complete
        batch = compute()
        self.asked[index] += 1
        self.complete = before or len(self.asked) >= self.count or self.asked[index] >= OFTEN
        if self.differ:
            return batch
        if known is None:
            self._keep(index, batch)
        elif before:  # asked for again in a later epoch
            self.differ = not _alike(known, batch)
            self.compared.add(index)
            if self.differ:
                self.batches.clear()
        return batch

    def _keep(self, index: Any, batch: Any) -> None:
        size = sum(int(getattr(part, "nbytes", 64)) for part in _parts(batch))
        if self.bytes + size <= self.limit:
            self.batches[index] = _copied(batch)
            self.bytes += size


def _alike(first: Any, second: Any) -> bool:
    ours, theirs = _parts(first), _parts(second)
    return len(ours) == len(theirs) and all(map(_same, ours, theirs))


def _same(first: Any, second: Any) -> bool:
    one, other = np.asarray(first), np.asarray(second)
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def _copied(batch: Any) -> Any:
    """With arrays of its own: `__getitem__` may fill the same ones for the next batch, or give views of what the
    program changes between epochs."""
    if isinstance(batch, np.ndarray):
        return batch.copy(order="K")
    if type(batch) is dict:
        return {key: _copied(part) for key, part in batch.items()}
    return type(batch)(map(_copied, batch)) if type(batch) in (list, tuple) else batch


def _parts(batch: Any) -> list[Any]:
    if isinstance(batch, dict):
        return [part for key in sorted(batch, key=str) for part in _parts(batch[key])]
    if isinstance(batch, (list, tuple)):
        return [part for item in batch for part in _parts(item)]
    return [batch]


HOOKS = Hooks(keras=on_keras, tf_keras=on_tf_keras)
