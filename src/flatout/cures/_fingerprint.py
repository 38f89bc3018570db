"""A Python value as something that can be compared later: does it still mean the same to a function that reads it?

Numbers and texts stand for themselves, lists, dictionaries and arrays for what they hold, and any other object for its
identity and those of its attributes that the function reads by name.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

PLAIN = (int, float, bool, str, bytes, complex, type(None))
MISSING = object()
_PLAIN_TYPES = frozenset(PLAIN)
_WHOLE_BYTES = 4096
"""Arrays up to this size are compared as a whole, larger ones by elements spread over them."""
_SAMPLES = 512
_DEPTH = 3
_NEEDS_TRAINABLE = frozenset({"trainable_variables", "trainable_weights"})
_MOST_PARTS = 64
"""Elements of a list that are looked into, where they are no plain values."""


class Reader:
    """Tells what values mean to a function that reads attributes with these names from objects."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._relevant: dict[int, tuple[str, ...]] = {}
        """The names that an object has, by its identity: a few of many, looked up in every call."""

    def told(self, value: Any, depth: int = _DEPTH) -> Any:
        """Equal as long as the value means the same."""
        if isinstance(value, PLAIN):
            return (type(value), value)
        if isinstance(value, (list, tuple, dict, set, frozenset, deque)):
            return self._container(value, depth)
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
            return _array(value)
        if isinstance(value, MethodType):
            return (id(value.__self__), id(value.__func__))
        if depth <= 0 or isinstance(value, (FunctionType, ModuleType, type)) or is_tensor(value):
            return id(value)
        return self._object(value, depth)

    def _container(self, value: Any, depth: int) -> Any:
        parts = value.values() if isinstance(value, dict) else value
        keys = tuple(value) if isinstance(value, dict) else ()
        try:
            if _PLAIN_TYPES.issuperset(map(type, parts)):
                held = frozenset(parts) if isinstance(value, (set, frozenset)) else tuple(parts)
                return (id(value), keys, held, tuple(map(type, parts)))
            if depth <= 0 or len(value) > _MOST_PARTS:
                return (id(value), keys, tuple(map(id, parts)))
            return (id(value), keys, tuple(self.told(part, depth - 1) for part in parts))
        except (TypeError, RuntimeError):  # keys that cannot be compared; changed by another thread just now
            return id(value)

    def _object(self, value: Any, depth: int) -> Any:
        """Its identity, and the attributes that are kept on it and that may change what a function computes."""
        kept = kept_attributes(value)
        relevant = self._relevant.get(id(value))
        if relevant is None:
            have = (name for name in self.names if own(value, name) is not MISSING)
            relevant = self._relevant[id(value)] = tuple(have)
        found: list[Any] = [self.told(own(value, name), depth - 1) for name in relevant]
        if kept is not None and "_trainable" in kept and not self.names.isdisjoint(_NEEDS_TRAINABLE):
            found.append(tuple(getattr(layer, "_trainable", None) for layer in (value, *kept.get("_layers", ()))))
        return (id(value), *found) if found else id(value)


def is_tensor(value: Any) -> bool:
    """A tensor, a variable, a dataset: a graph reads it anew, or it never changes."""
    kind = type(value)
    return (hasattr(kind, "dtype") and hasattr(kind, "shape")) or hasattr(kind, "element_spec")


def _array(value: Any) -> Any:
    if value.dtype.hasobject:
        return id(value)
    if value.nbytes > _WHOLE_BYTES:
        flat = value.reshape(-1) if value.flags.c_contiguous else value.flat
        value = flat[:: max(value.size // _SAMPLES, 1)]
    return (value.dtype.str, value.shape, value.tobytes())


def kept_attributes(value: Any) -> dict[str, Any] | None:
    kept = getattr(value, "__dict__", None)
    return kept if isinstance(kept, dict) else None


def of_class(value: Any, name: str) -> Any:
    """An attribute that stands in the class, or in a slot. A property is computed: its value now says nothing."""
    for kind in type(value).__mro__:
        found = vars(kind).get(name, MISSING)
        if found is MISSING:
            continue
        if type(found).__name__ == "member_descriptor":
            try:
                return found.__get__(value)
            except AttributeError:
                return MISSING
        return MISSING if hasattr(type(found), "__get__") else found
    return MISSING


def own(value: Any, name: str) -> Any:
    """An attribute that is simply kept: on the object, in a slot, in its class, in a module or a class itself."""
    if isinstance(value, type):
        inherited: Iterator[Any] = (vars(kind)[name] for kind in value.__mro__ if name in vars(kind))
        return next(inherited, MISSING)
    kept = kept_attributes(value)
    found = kept.get(name, MISSING) if kept is not None else MISSING
    return of_class(value, name) if found is MISSING else found
