"""Units: sets of channels, anywhere in a model, that can only be removed together.

Each index of a tensor's channel axis has the number of a unit. Layers make new units, tie units together (an addition
ties the channels of both sides), repeat them (a flatten) or pin them (what must stay: inputs, outputs, the inputs of a
layer that is not understood). The slices of variables that belong to units are recorded as cuts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Labels:
    """The units along one axis of one tensor."""

    shape: tuple[int | None, ...]
    axis: int
    units: Array

    def moved(self, shape: tuple[int | None, ...], axis: int) -> Labels:
        return Labels(tuple(shape), axis % max(len(shape), 1), self.units)


@dataclass(frozen=True)
class Cut:
    """One axis of a variable that gets shorter with its units."""

    layer: Any
    variable: Any
    axis: int
    units: Array
    produces: bool
    """Whether the slices along this axis make the channel (its filter, its bias), or read it."""


@dataclass(frozen=True)
class Resize:
    """An entry of a layer's config that depends on the number of remaining units."""

    layer: Any
    key: str
    units: Array
    divisor: int = 1
    index: int | None = None
    """Index into the entry, if it is a tuple."""


@dataclass
class Ledger:
    """Everything that is known about the units of one model."""

    parents: list[int] = field(default_factory=list)
    pinned: dict[int, str] = field(default_factory=dict)
    """Why a unit must stay, by its root."""
    cuts: dict[tuple[int, int], Cut] = field(default_factory=dict)
    resizes: dict[tuple[int, str, int | None], Resize] = field(default_factory=dict)
    work: list[tuple[Any, float]] = field(default_factory=list)
    """(kernel, how often each of its weights is multiplied for one sample)."""
    _owned: dict[tuple[int, str], Array] = field(default_factory=dict)
    _frozen_roots: Array | None = None

    def fresh(self, count: int) -> Array:
        start = len(self.parents)
        self.parents.extend(range(start, start + count))
        return np.arange(start, start + count)

    def root(self, unit: int) -> int:
        while self.parents[unit] != unit:
            self.parents[unit] = self.parents[self.parents[unit]]
            unit = self.parents[unit]
        return unit

    def freeze(self) -> None:
        """Compute all roots once, after all calls have been followed."""
        self._frozen_roots = np.array([self.root(unit) for unit in range(len(self.parents))], dtype=np.int64)

    def roots(self, units: Array) -> Array:
        if self._frozen_roots is not None:
            found: Array = self._frozen_roots[units]
            return found
        roots: Array = np.array([self.root(int(unit)) for unit in units.ravel()], dtype=np.int64)
        return np.reshape(roots, units.shape)

    def tie(self, one: Array, other: Array) -> None:
        for a, b in zip(one.ravel(), other.ravel(), strict=True):
            first, second = self.root(int(a)), self.root(int(b))
            if first != second:
                keep, drop = min(first, second), max(first, second)
                self.parents[drop] = keep
                if drop in self.pinned:
                    self.pinned.setdefault(keep, self.pinned.pop(drop))

    def pin(self, units: Array, why: str) -> None:
        for unit in set(self.roots(units).ravel().tolist()):
            self.pinned.setdefault(unit, why)

    def fixed(self, count: int, why: str) -> Array:
        units = self.fresh(count)
        self.pin(units, why)
        return units

    def own(self, layer: Any, role: str, count: int) -> Array:
        """The units that a layer makes; a shared layer makes the same ones at each call."""
        key = (id(layer), role)
        if key not in self._owned:
            self._owned[key] = self.fresh(count)
        return self._owned[key]

    def reads(self, layer: Any, role: str, units: Array) -> Array:
        """The units that a layer reads; a shared layer reads the same ones at each call."""
        first = self._owned.setdefault((id(layer), role), units)
        if first is not units:
            self.tie(first, units)
        return first

    def cut(self, layer: Any, variable: Any, axis: int, units: Array, *, produces: bool = False) -> None:
        if variable is None:
            return
        axis %= len(variable.shape)
        if variable.shape[axis] != len(units):
            raise AssertionError(f"{variable.path}: axis {axis} of {tuple(variable.shape)} and {len(units)} units")
        self.cuts.setdefault((id(variable), axis), Cut(layer, variable, axis, units, produces))

    def resize(self, layer: Any, key: str, units: Array, *, divisor: int = 1, index: int | None = None) -> None:
        self.resizes.setdefault((id(layer), key, index), Resize(layer, key, units, divisor, index))

    def add_work(self, variable: Any, times: float) -> None:
        self.work.append((variable, times))

    def kept(self, units: Array, removed: frozenset[int]) -> Array:
        """Indices of the units that stay."""
        if not removed:
            return np.arange(len(units))
        stay: Array = np.flatnonzero(~np.isin(self.roots(units), list(removed)))
        return stay


def positions(shape: Iterable[int | None], skip: int) -> float:
    """How many positions a tensor has besides its batch and one axis; unknown sizes count as one."""
    return float(np.prod([size or 1 for axis, size in enumerate(shape) if axis not in (0, skip)] or [1]))
