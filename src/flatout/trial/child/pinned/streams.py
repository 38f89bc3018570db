"""`random` and `numpy.random`: each place of the program draws from a stream of its own.

With one stream for all, a thread that prepares batches and the training loop take each other's numbers, in an order
that the clock decides; and a lever that draws once more shifts all that follow.
"""

from __future__ import annotations

import functools
import random
import threading
from collections.abc import Callable
from typing import Any

from flatout.observe.after_import import after_import
from flatout.trial.child.pinned import places

_OF_RANDOM = (
    *("random", "uniform", "randint", "randrange", "choice", "choices", "sample", "shuffle", "getrandbits", "gauss"),
    *("normalvariate", "lognormvariate", "betavariate", "expovariate", "gammavariate", "triangular", "randbytes"),
    *("vonmisesvariate", "paretovariate", "weibullvariate", "binomialvariate"),
)
_NOT_DRAWS = ("seed", "get_state", "set_state")


class Streams:
    """One generator for each place, until the program sets the seed."""

    def __init__(self, seed: Any, make: Callable[[str], Any]) -> None:
        self.seed = seed
        self._make = make
        self._found: dict[str, Any] = {}
        self._lock = threading.Lock()

    def at(self, place: str) -> Any:
        found = self._found.get(place)
        if found is None:
            with self._lock:
                found = self._found.setdefault(place, self._make(f"{self.seed}:{place}"))
        return found

    def begin(self, seed: Any) -> None:
        """The program has set its seed."""
        with self._lock:
            self.seed = seed
            self._found = {}


def install(seed: int) -> None:
    streams = Streams(seed, random.Random)
    for name in _OF_RANDOM:
        if hasattr(random, name):
            setattr(random, name, _drawing(streams, name, getattr(random, name)))
    random.seed = _seeding(streams, random.seed)
    after_import("numpy.random", functools.partial(_install_in_numpy, seed))


def _install_in_numpy(seed: int, module: Any) -> None:
    def make(text: str) -> Any:
        return module.RandomState(random.Random(text).getrandbits(32))

    streams = Streams(seed, make)
    for name in dir(module.RandomState):
        function = getattr(module, name, None)
        if name.startswith("_") or name in _NOT_DRAWS or getattr(function, "__self__", None) is not module.mtrand._rand:
            continue
        pinned = _drawing(streams, name, function)
        setattr(module, name, pinned)
        setattr(module.mtrand, name, pinned)
    for name in ("sample", "ranf"):  # further names of `random_sample`
        if hasattr(module, name):
            setattr(module, name, module.random_sample)
    module.seed = module.mtrand.seed = _seeding(streams, module.seed)


def _drawing(streams: Streams, name: str, original: Any) -> Any:
    @functools.wraps(original)
    def draw(*args: Any, **keywords: Any) -> Any:
        return getattr(streams.at(places.caller()), name)(*args, **keywords)

    return draw


def _seeding(streams: Streams, original: Any) -> Any:
    @functools.wraps(original)
    def seed(*args: Any, **keywords: Any) -> Any:
        result = original(*args, **keywords)
        given = args[0] if args else next(iter(keywords.values()), None)
        # Without a number the program asks for fresh entropy; what it got is the same in both runs.
        streams.begin(repr(given) if given is not None else f"{streams.seed}+")
        return result

    return seed
