"""Python numbers among the arguments of a function that change from call to call: each value would cause a trace.

A number that has changed twice is passed as a tensor from then on: float32 or int32, the types that TensorFlow gives to
a Python number next to a tensor of single precision.
"""

from __future__ import annotations

from typing import Any

CHANGES = 2
_SMALL = 2**31


class Scalars:
    """The numbers among the arguments of one function, by position or name."""

    __slots__ = ("as_tensors", "changes", "last", "off")

    def __init__(self) -> None:
        self.last: dict[int | str, int | float] = {}
        self.changes: dict[int | str, int] = {}
        self.as_tensors: set[int | str] = set()
        self.off = False
        """Set where a trace with tensors failed: numbers are left alone for good."""

    def replace(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, with changing numbers as tensors."""
        if self.off:
            return args, kwargs
        changed = None
        for key, value in enumerate(args):
            kind = type(value)
            if (kind is float or kind is int) and self._changes(key, value):
                changed = changed or list(args)
                changed[key] = _tensor(value)
        named = None
        for name, value in kwargs.items():
            kind = type(value)
            if (kind is float or kind is int) and self._changes(name, value):
                named = named or dict(kwargs)
                named[name] = _tensor(value)
        return (args if changed is None else tuple(changed)), (kwargs if named is None else named)

    def _changes(self, key: int | str, value: int | float) -> bool:
        if type(value) is int and not -_SMALL <= value < _SMALL:
            return False
        if key in self.as_tensors:
            return True
        last = self.last.get(key)
        self.last[key] = value
        if last is None or (last == value and type(last) is type(value)):
            return False
        self.changes[key] = self.changes.get(key, 0) + 1
        if self.changes[key] >= CHANGES:
            self.as_tensors.add(key)
            return True
        return False


def _tensor(value: int | float) -> Any:
    import tensorflow as tf

    return tf.constant(value, tf.float32 if type(value) is float else tf.int32)
