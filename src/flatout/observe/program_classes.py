"""Methods that are replaced in classes of the program's own, such as its callbacks.

A program may define a class in a function, and so make one for each call of `fit`. What it lets go of is not kept here:
a method holds all that its function was defined with.
"""

from __future__ import annotations

import contextlib
import weakref
from types import FunctionType

_Methods = list[tuple[str, weakref.ref[FunctionType]]]

_changed: dict[int, tuple[weakref.ref[type], _Methods]] = {}
"""By the identity of a class: what was put in the place of its methods."""


def replace_method(holder: type, name: str, value: FunctionType) -> None:
    """Set a method so that `restore` can undo it. `value` has the original as its `__wrapped__`."""
    setattr(holder, name, value)
    _methods_of(holder).append((name, weakref.ref(value)))


def restore() -> None:
    """Undo all of them, where the program has put nothing else there since."""
    for holder, methods in list(_changed.values()):
        found = holder()
        for name, reference in methods:
            value = reference()
            if found is not None and value is not None and vars(found).get(name) is value:
                with contextlib.suppress(Exception):  # a metaclass may forbid it
                    setattr(found, name, vars(value)["__wrapped__"])
    _changed.clear()


def _methods_of(holder: type) -> _Methods:
    key = id(holder)
    known = _changed.get(key)
    if known is None or known[0]() is not holder:
        known = _changed[key] = (weakref.ref(holder, lambda gone: _forget(key, gone)), [])
    return known[1]


def _forget(key: int, gone: weakref.ref[type]) -> None:
    if key in _changed and _changed[key][0] is gone:
        del _changed[key]
