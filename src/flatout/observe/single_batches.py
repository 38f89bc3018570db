"""Which calls of `fit`, `predict` and `evaluate` a call for a single batch can stand for.

The probe counts them, so that a finding names only cures that engage; the levers ask the same before each call.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

DEFAULT_SIZE = 32
MOST_BATCHES = 16
"""`predict` for so many batches goes through the model at once: rows are independent there… `fit` takes them one after
the other."""
MOST_BYTES = 32 << 20
"""…and what they take in memory as inputs is little."""

_IGNORED = {"verbose", "shuffle"}
"""They change nothing for one batch but what is printed, and the order in which its rows are summed up."""
_USED = {"x", "y", "sample_weight", "batch_size", "epochs", "return_dict"}


@dataclass(frozen=True)
class SingleBatch:
    x: Any
    y: Any = None
    sample_weight: Any = None
    epochs: int = 1
    return_dict: bool = False
    shown: bool = False
    """Whether the call prints its progress."""
    size: int = 0
    """Rows of a batch, where they are several."""
    batches: int = 1


class Signature:
    """Reads the arguments of one Keras method; made once, asked at every call."""

    def __init__(self, method: str, original: Callable[..., Any]) -> None:
        self.method = method
        self._signature = inspect.signature(original)
        self._defaults = {name: item.default for name, item in self._signature.parameters.items()}

    def single_batch(self, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> SingleBatch | None:
        """What the call asks for, where a single batch of arrays is all of it; None for any other call."""
        asked = self.few_batches(model, args, kwargs)
        return asked if asked is not None and (asked.batches == 1 or self.method == "predict") else None

    def few_batches(self, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> SingleBatch | None:
        """The same for a few batches, which `fit` goes through in the order of their rows."""
        try:
            given = dict(self._signature.bind(model, *args, **kwargs).arguments)
        except TypeError:
            return None  # the program's own error
        given.pop("self", None)
        if isinstance(given.get("batch_size"), Integral):
            given["batch_size"] = int(given["batch_size"])  # of NumPy
        if not self._is_plain(given) or getattr(model, "_distribute_strategy", None) is not None:
            return None
        x, y, weights = (given.get(name) for name in ("x", "y", "sample_weight"))
        if x is None or (self.method != "predict" and y is None):
            return None
        rows = _rows([value for value in (x, y, weights) if value is not None])
        size = given.get("batch_size") or (rows if given.get("steps") else DEFAULT_SIZE)
        if not rows or not isinstance(size, int) or size < 1 or not self._goes_through(given, rows, size):
            return None
        if rows > size and sum(map(_bytes, _leaves(x))) > MOST_BYTES:
            return None
        epochs = given.get("epochs", 1)
        if not isinstance(epochs, int) or epochs < 1 or (weights is not None and not is_array(y)):
            return None
        shown = given.get("verbose", "auto") not in (0, False)
        return SingleBatch(x, y, weights, epochs, bool(given.get("return_dict")), shown, size, math.ceil(rows / size))

    def _goes_through(self, given: Mapping[str, Any], rows: int, size: int) -> bool:
        """Whether the rows are a batch, or a few whose order is known: `fit` shuffles them unless it is told not to."""
        if rows <= size:
            return True
        if self.method == "fit" and given.get("shuffle", True) not in (False, 0, None):
            return False
        return self.method in ("fit", "predict") and rows <= size * MOST_BATCHES

    def _is_plain(self, given: Mapping[str, Any]) -> bool:
        """Whether all other arguments are left as they are by default."""
        for name, value in given.items():
            if name in _IGNORED or name in _USED:
                continue
            if name == "steps" and value == 1:
                continue  # all rows are one batch
            if name == "kwargs" and not value:
                continue
            if name == "callbacks" and isinstance(value, (list, tuple)) and not value:
                continue
            if not (value is None or value is self._defaults.get(name) or _same(value, self._defaults.get(name))):
                return False
        return True


def _same(value: Any, default: Any) -> bool:
    return isinstance(value, (int, float)) and isinstance(default, (int, float)) and value == default


def is_array(value: Any) -> bool:
    """An array with rows: of NumPy, or a tensor that has its value."""
    import numpy as np

    if isinstance(value, np.ndarray):
        return value.ndim > 0 and value.dtype.kind in "fiub"
    return hasattr(value, "_numpy") and len(value.shape) > 0


def is_batch(values: Iterable[Any]) -> bool:
    """Whether these are arrays or structures of arrays; None stands for one that is not given."""
    found = False
    for leaf in _leaves(list(values)):
        if leaf is not None and not is_array(leaf):
            return False
        found = found or leaf is not None
    return found


def _rows(values: list[Any]) -> int:
    """How many rows all of these arrays have; 0 where they differ, or something is no array."""
    rows: set[int] = set()
    for leaf in _leaves(values):
        if not is_array(leaf):
            return 0  # at the first one: a list of numbers may have millions
        rows.add(int(leaf.shape[0]))
    return rows.pop() if len(rows) == 1 else 0


def _bytes(leaf: Any) -> int:
    """Of an array of NumPy, or a tensor."""
    return int(math.prod(leaf.shape)) * int(getattr(leaf.dtype, "itemsize", 0) or leaf.dtype.size)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from _leaves(part)
    else:
        yield value
