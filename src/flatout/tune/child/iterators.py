"""Tells the gate of new iterators, and keeps finished ones alive: TensorFlow may take a minute to delete one.

tf.data's tuner sleeps longer and longer while an iterator lives, up to 60 s, and the destructor of the iterator waits
for it. The word to stop can come while the tuner is not yet able to see it (it looks at a flag that is set only after
it was woken), and then the program stands still at the end of an epoch. A program that is held at a gate has old
iterators all the time. What is kept is released when the trial ends.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.observe.observer import Observer
from flatout.observe.private_names import patch

MOST = 64


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    kept: list[Any] = []

    def wrap(original: Any) -> Any:
        def _create_iterator(iterator: Any, dataset: Any) -> Any:
            result = original(iterator, dataset)
            kept.append(getattr(iterator, "_iterator_resource", None))
            del kept[:-MOST]
            observer.epochs += 1
            return result

        return _create_iterator

    patch("iterator-make", wrap)
