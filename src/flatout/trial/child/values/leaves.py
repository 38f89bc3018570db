"""The tensors in whatever a program returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def leaves(structure: Any) -> list[Any]:
    """What is in the tuples, lists and dictionaries of a structure, in the order of TensorFlow. TensorFlow sorts the
    keys of a dictionary and refuses those that have no order; such dictionaries are read in their own order."""
    from tensorflow.python.util import nest

    try:
        return list(nest.flatten(structure))
    except (TypeError, ValueError):
        return list(_unsorted(structure))


def _unsorted(structure: Any) -> Iterator[Any]:
    if isinstance(structure, Mapping):
        structure = tuple(structure.values())
    if isinstance(structure, (tuple, list)):
        for part in structure:
            yield from _unsorted(part)
    else:
        yield structure
