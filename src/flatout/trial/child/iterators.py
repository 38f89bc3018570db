"""Counts new iterators for the gate, and keeps old ones alive: TensorFlow may take a minute to delete one.

tf.data's tuner sleeps longer and longer while an iterator lives, up to 60 s, and the destructor of the iterator waits
for it. The signal to stop can come while the tuner is not yet able to see it (it looks at a flag that is set only after
it was woken), and then the program stands still at the end of an epoch. An iterator that was there while its program
was held at a gate is an old one; what is kept is released when the trial ends. One that came and went between two
holds, as each call of `predict` makes it, is as young as in the program itself, and goes.
"""

from __future__ import annotations

import weakref
from types import ModuleType
from typing import Any

from flatout.observe.observer import Observer, Probe
from flatout.observe.private_names import patch

MOST = 64


class Keeper:
    def __init__(self) -> None:
        self.living: list[tuple[weakref.ref[Any], Any, int]] = []
        """Iterators, what they hold in TensorFlow, and how often the program had been held when they were made."""
        self.old: list[Any] = []

    def made(self, iterator: Any, held: int) -> None:
        gone = [(resource, since) for reference, resource, since in self.living if reference() is None]
        self.living = [one for one in self.living if one[0]() is not None]
        self.living.append((weakref.ref(iterator), getattr(iterator, "_iterator_resource", None), held))
        self.old += [resource for resource, since in gone if since != held]
        del self.old[:-MOST]


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    keeper = Keeper()

    def wrap(original: Any) -> Any:
        def _create_iterator(iterator: Any, dataset: Any) -> Any:
            result = original(iterator, dataset)
            keeper.made(iterator, observer.trial.held)
            observer.trial.epochs += 1
            return result

        return _create_iterator

    patch("iterator-make", wrap)


PROBE = Probe("iterators", tensorflow=on_tensorflow)
