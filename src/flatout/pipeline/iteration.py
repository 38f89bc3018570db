"""Hands a rewritten dataset to the program where it starts to iterate the one that it wrote.

The program keeps its own object, with its own length and options; only the iterator is made from the rewritten one. A
dataset is rewritten once, so that a cache outlives the epoch. Iterators made in Python (which Keras uses, too), loops
over a dataset inside a tf.function, and `reduce` are covered; graphs of TensorFlow 1 and datasets that a strategy
distributes are left as they are.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from flatout.observe import stages
from flatout.observe.injection import Injection
from flatout.observe.private_names import Missing, patch
from flatout.observe.ticks import CALL, TRACE
from flatout.pipeline import recipes
from flatout.pipeline.rewriting import Proposal


@dataclass
class Iterated:
    """A dataset that the program iterates."""

    dataset: Any
    """As it is to be iterated."""
    opened: int = 0
    """How often the program has begun to iterate it."""
    iterators: list[weakref.ref[Any]] = field(default_factory=list)

    @property
    def alive(self) -> bool:
        """Whether the program still holds an iterator of it."""
        return any(reference() is not None for reference in self.iterators)


Rewrite = Callable[[Any, Iterated], Proposal | None]
"""Given a dataset: the one to iterate in its place, or None to leave it."""


@dataclass
class _Rewriters:
    known: list[tuple[Injection, Rewrite]] = field(default_factory=list)
    busy: threading.local = field(default_factory=threading.local)


_rewriters = _Rewriters()


def rewrite_with(injection: Injection, rewrite: Rewrite) -> None:
    """From now on, every dataset that the program iterates goes through `rewrite` first.

    Levers that are combined rewrite in the order in which they are installed; each gets the result of the one before.
    """
    recipes.install()
    _install()
    _rewriters.known.append((injection, rewrite))


@functools.cache
def _install() -> None:
    def create(original: Any) -> Any:
        def _create_iterator(iterator: Any, dataset: Any) -> Any:
            return original(iterator, rewritten(dataset, iterator))

        return _create_iterator

    def consume(original: Any) -> Any:
        def consumer(dataset: Any, *args: Any, **kwargs: Any) -> Any:
            return original(rewritten(dataset), *args, **kwargs)

        return consumer

    patch("iterator-make", create)
    for key in ("dataset-loop", "dataset-reduce"):
        with contextlib.suppress(Missing):  # iterators alone are worth having
            patch(key, consume)


def rewritten(dataset: Any, iterator: Any = None) -> Any:
    """The dataset to iterate; the one that was given where there is nothing to change, or anything goes wrong."""
    if getattr(_rewriters.busy, "on", False) or not hasattr(dataset, "_variant_tensor"):
        return dataset
    given = stages.plain(dataset)
    if not hasattr(given._variant_tensor, "_numpy") or _of_a_strategy(given):
        return dataset
    iterated = getattr(given, "_flatout_iterated", None)
    if iterated is None:
        iterated = given._flatout_iterated = Iterated(given)
        with unseen():
            _rewrite(iterated)
    iterated.opened += 1
    if iterator is not None:
        iterated.iterators = [*iterated.iterators[-8:], weakref.ref(iterator)]
    return dataset if iterated.dataset is given else iterated.dataset


@contextlib.contextmanager
def unseen() -> Iterator[None]:
    """What is iterated inside is iterated as it is, and is no wait, no call and no step of the program."""
    thread = _rewriters.known[0][0].observer.thread
    probes, thread.busy = thread.busy, thread.busy | TRACE | CALL
    _rewriters.busy.on = True
    try:
        yield
    finally:
        _rewriters.busy.on = False
        thread.busy = probes


def _of_a_strategy(dataset: Any) -> bool:
    """What a strategy makes for each of its devices is not the program's pipeline."""
    return any("PerDevice" in stages.kind(stage) for stage, _ in stages.chain(dataset))


def _rewrite(iterated: Iterated) -> None:
    import tensorflow as tf

    with tf.init_scope(), recipes.without_draws():
        for injection, rewrite in _rewriters.known:
            before = iterated.dataset
            try:
                found = rewrite(before, iterated)
                if found is None:
                    continue
                if found.dataset.element_spec != before.element_spec:
                    injection.note(f"left alone: {found.what} would have given elements of another shape or type")
                    continue
            except recipes.Opaque as opaque:
                injection.note(f"left alone: {opaque}")
                continue
            except Exception as error:  # a pipeline that cannot be rewritten is iterated as it is
                injection.note(f"left alone: {type(error).__name__}: {str(error)[:200]}")
                continue
            iterated.dataset = recipes.stands_for(found.dataset, before)
            injection.changed(found.what)
