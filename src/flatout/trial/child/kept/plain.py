"""Whether values are plain data that can be restored as they are: numbers, texts, containers, arrays, frames of pandas.

What is the same object, or shares memory, is so again when all of them are written together. What something else holds
as well would be another object then, and is not kept.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import gc
import itertools
import pathlib
import pickle
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from flatout.model.errors import Internal

_ATOMS: set[type] = {
    *(bool, int, float, complex, str, bytes, range, slice, type(None), type(...)),
    *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone),
    *(decimal.Decimal, fractions.Fraction, type(pathlib.Path()), type(pathlib.PurePath())),
}
_MAPPINGS = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)
_SEQUENCES = (list, tuple, set, frozenset, collections.deque)
_UNCHANGEABLE = (tuple, frozenset)
_MADE_BY_DEFAULT = (None, list, dict, set, int, float, str, bool)
_PACKAGES = frozenset(
    (
        *("builtins", "numpy", "pandas", "pyarrow", "collections", "datetime", "decimal", "fractions", "pathlib"),
        *("copyreg", "_codecs", "zoneinfo", "dateutil", "pytz", "ml_dtypes"),
    )
)
"""Whose objects may be found inside frames, and what their pickles call."""

_OF_PLACES = ("BlockManager", "SingleBlockManager", "BlockPlacement")
"""Parts of frames with arrays that say where columns are: nobody changes them."""


class NotPlain(Internal):
    """Something cannot be kept; the text says what and why."""


def check(namespace: Mapping[str, Any], names: Iterable[str], beside: Iterable[str] = ()) -> int:
    """The bytes that these values take, about. Raises `NotPlain`. `beside`: names that are not to be kept, whose values
    hold some of the same."""
    walk = _Walk()
    for name in names:
        walk.add(name, namespace[name])
    for name in beside:
        walk.add(name, namespace[name], strict=False)
    walk.check_sets()
    walk.check_frames()
    walk.check_held_elsewhere()
    return sum(one.nbytes for one in walk.found.values() if is_array(one) and root(one) is one)


def is_allowed(value: object) -> bool:
    """Whether an object inside of a frame, or what its pickle calls, is data too."""
    module = getattr(value, "__module__", None) if callable(value) else type(value).__module__
    return str(module).partition(".")[0] in _PACKAGES


class _Walk:
    def __init__(self) -> None:
        self.found: dict[int, Any] = {}
        """Containers, arrays and frames, by their identity."""
        self.names: dict[int, str] = {}
        """The first name of each."""
        self.held = Counter[int]()
        """How often the others, and names, hold each of them."""

    def add(self, name: str, value: Any, strict: bool = True) -> None:
        waiting = [value]
        while waiting:
            one = waiting.pop()
            if type(one) in _ATOMS or _is_scalar(one):
                continue
            self.held[id(one)] += 1
            if id(one) in self.found:
                continue
            try:
                waiting += _children(one, name)
            except NotPlain:
                if strict:
                    raise
            self.found[id(one)], self.names[id(one)] = one, name

    def check_sets(self) -> None:
        """The order of a set depends on how it was made."""
        for key, one in self.found.items():
            if type(one) in (set, frozenset) and list(pickle.loads(pickle.dumps(one, 5))) != list(one):
                raise NotPlain(f"the order of the set in `{self.names[key]}` would be another one")

    def check_frames(self) -> None:
        """Those of pandas know of each other where they share memory."""
        seen: dict[int, str] = {}
        for key, one in self.found.items():
            name = self.names[key]
            for memory in {id(root(array)) for array in _arrays_in(one)} if _is_frame(one) else ():
                other = seen.setdefault(memory, name)
                if other is not name:
                    raise NotPlain(f"`{other}` and `{name}` share their memory, unless one of them is a copy()")

    def check_held_elsewhere(self) -> None:
        if self._held_elsewhere():
            gc.collect()  # it may be garbage that holds it
        if name := self._held_elsewhere():
            raise NotPlain(f"something else holds `{name}` as well, or a part of it")

    def _held_elsewhere(self) -> str:
        probe: list[object] = []
        found = {**self.found, id(probe): probe}
        counts = {key: sys.getrefcount(one) for key, one in found.items()}
        for key, one in self.found.items():
            fixed = type(one) in _UNCHANGEABLE or _is_index(one)
            if not fixed and counts[key] > self.held[key] + counts[id(probe)]:
                return self.names[key]
        return ""


# ── kinds of values ──────────────────────────────────────────────────────────────────────────────────────────────────


def is_array(value: object) -> bool:
    """Of numpy itself: those that derive from it, as memory maps and masked arrays, are something else besides."""
    return type(value).__name__ == "ndarray" and type(value).__module__ == "numpy"


def root(array: Any) -> Any:
    """The array whose memory it shows: itself, or another one."""
    while is_array(array.base):
        array = array.base
    return array


def _is_scalar(value: object) -> bool:
    """A number of numpy. An element of a structured array is none: it shares the memory of that."""
    numpy = sys.modules.get("numpy")
    if type(value).__module__ == "ml_dtypes" or numpy is None:
        return numpy is not None
    return isinstance(value, (numpy.generic, numpy.dtype)) and not isinstance(value, numpy.void)


def _is_frame(value: object) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and type(value) in (pandas.DataFrame, pandas.Series)


def _is_index(value: object) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.Index)


def _is_of_pandas(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas"


def _children(value: Any, name: str) -> Iterator[Any]:
    """What a container holds. Raises `NotPlain` for what is neither a container nor a value."""
    kind = type(value)
    if kind in _MAPPINGS:
        if kind is collections.defaultdict and value.default_factory not in _MADE_BY_DEFAULT:
            raise NotPlain(f"`{name}` has a function")
        yield from itertools.chain.from_iterable(value.items())
    elif kind in _SEQUENCES:
        yield from value
    elif is_array(value):
        yield from _of_array(value, name)
    elif _is_frame(value):
        yield from _arrays_in(value)
    elif kind is not bytearray and not _is_index(value):
        raise NotPlain(f"`{name}` is no plain data: it has a {kind.__name__}")


def _of_array(array: Any, name: str) -> Iterator[Any]:
    if array.dtype.hasobject and array.dtype != object:
        raise NotPlain(f"`{name}` has an array with objects in its fields")
    if array.dtype.kind == "T":
        raise NotPlain(f"`{name}` has an array of texts of any length")
    base = array.base
    if is_array(base):
        yield base
    elif base is not None and type(base) is not bytes:
        raise NotPlain(f"the memory of `{name}` belongs to a {type(base).__name__}")
    elif array.dtype == object:
        yield from array.reshape(-1).tolist()


def _arrays_in(frame: Any) -> list[Any]:
    """The arrays with the columns of a frame, each as often as something in the frame holds it."""
    waiting, seen = [frame], {id(frame)}
    arrays = []
    while waiting:
        holder = waiting.pop()
        places = type(holder).__name__ in _OF_PLACES
        for one in gc.get_referents(holder):
            if is_array(one):
                arrays += [] if places else [one]
            elif id(one) not in seen and not isinstance(one, type) and not _is_index(one):
                seen.add(id(one))
                inside = _is_of_pandas(one) and not callable(one)
                waiting += [one] if inside or type(one) in (dict, list, tuple) else []
    return arrays
