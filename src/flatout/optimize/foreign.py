"""A file made elsewhere, given to --compare: which of its inputs and outputs belong to which of the model's.

A converter may have sorted or renamed them. Inputs are matched by name, then by shape and type. Outputs are matched by
value, where one order agrees with the original's answers and the order of the file does not; else by name.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from flatout.measure.agreement import agreement
from flatout.routes._route import End
from flatout.subject import Array, Tensor

MOST_OUTPUTS = 6
"""Of more, not all orders are tried."""
AGREES = 0.9
BETTER = 0.1


@dataclass(frozen=True)
class Orders:
    """Of each of the model's inputs, then of its outputs, the place in the file; empty: as in the file."""

    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()


def orders(inputs: Sequence[Tensor], outputs: Sequence[Tensor], ends: tuple[Sequence[End], Sequence[End]]) -> Orders:
    """As far as names, shapes and types tell."""
    given, answered = ends
    return Orders(_by_name(inputs, given) or _by_form(inputs, given), _by_name(outputs, answered))


def in_original_order(
    original: Sequence[Array], given: Sequence[Array], by_name: Sequence[int]
) -> tuple[list[Array], tuple[int, ...]]:
    """The answers of the file in the order of the model's outputs, and that order; empty: that of the file."""
    count = len(original)
    if len(given) != count or count < 2:
        return list(given), ()
    same = tuple(range(count))
    as_it_is = _agreed(original, given)
    tried = itertools.permutations(same) if count <= MOST_OUTPUTS else iter([same])
    best = max(tried, key=lambda order: _agreed(original, [given[i] for i in order]))
    agreed = _agreed(original, [given[i] for i in best])
    if as_it_is > AGREES and agreed <= as_it_is + BETTER:
        best = same
    elif agreed <= AGREES or agreed <= as_it_is + BETTER:
        named = tuple(by_name) or same
        best = named if _fit(original, [given[i] for i in named]) else same
    return [given[i] for i in best], () if best == same else best


def _agreed(original: Sequence[Array], given: Sequence[Array]) -> float:
    return min(agreement(original, given)) if _fit(original, given) else float("-inf")


def _fit(original: Sequence[Array], given: Sequence[Array]) -> bool:
    return all(one.shape[1:] == other.shape[1:] for one, other in zip(original, given, strict=True))


def _by_name(wanted: Sequence[Tensor], ends: Sequence[End]) -> tuple[int, ...]:
    """Empty unless each of the model's names is that of exactly one in the file."""
    names = [_plain(one.name) for one in ends]
    if len(names) != len(wanted) or len(set(names)) < len(names):
        return ()
    found = [names.index(_plain(one.name)) for one in wanted if _plain(one.name) in names]
    return tuple(found) if len(set(found)) == len(wanted) else ()


def _by_form(wanted: Sequence[Tensor], ends: Sequence[End]) -> tuple[int, ...]:
    """By shape and type, where these tell the inputs apart."""
    if len(ends) != len(wanted):
        return ()
    found = []
    for one in wanted:
        fitting = [place for place, end in enumerate(ends) if _same_form(one, end)]
        if len(fitting) != 1:
            return ()
        found += fitting
    return tuple(found) if len(set(found)) == len(wanted) else ()


def _same_form(one: Tensor, end: End) -> bool:
    lengths = end.shape[len(end.shape) - len(one.sample) :] if one.sample else ()
    ranks = len(end.shape) == len(one.shape)
    return (
        ranks
        and end.dtype == one.dtype
        and all(there in (None, here) for here, there in zip(one.sample, lengths, strict=True))
    )


def _plain(name: str) -> str:
    """`serving_default_picture:0` → `picture`"""
    return name.partition(":")[0].rpartition("/")[2].removeprefix("serving_default_").lower()
