"""What a run has computed in its first steps, as the child recorded it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
EVALUATION = "evaluation "
"""How the names of series begin that an evaluation shows."""
OUTPUTS = "outputs "
"""The same of what models put out, call by call."""


def is_loss(name: str) -> bool:
    """Of a series."""
    return not name.startswith((EVALUATION, OUTPUTS))


@dataclass(frozen=True)
class Weights:
    """One variable after some steps."""

    name: str
    """Its type and shape."""
    checksum: int
    sample: Array
    no_numbers: int = 0
    """Of all its elements: those that are NaN or infinite."""


@dataclass(frozen=True)
class Digest:
    """All elements of one kind of output, as sums over stretches."""

    size: int
    """Elements in each."""
    length: int
    """Elements in all."""
    rows: Array
    """(weighted sum, sum of squares, which are no numbers) of each."""


@dataclass(frozen=True)
class Numbers:
    """Of one run."""

    weights: dict[int, dict[int, Weights]] = field(default_factory=dict)
    """By number of steps, then by order of creation."""
    series: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    """Scalars by what they are, then by the call that gave them."""
    calls: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    """The same in their order, each with the number of steps that the program had made before."""
    outputs: dict[str, Array] = field(default_factory=dict)
    digests: dict[str, Digest] = field(default_factory=dict)
    """The same to the end of a run that is only compared."""
    states: dict[int, dict[str, Weights]] = field(default_factory=dict)
    """Variables that are not trained: by number of steps, then by name."""
    epochs: tuple[int, ...] = ()
    """Steps after which a dataset was begun."""
    made: int = 0
    """Steps of the whole run, as far as it went."""
    ended: bool = False
    """Whether it came to its end by itself."""
    counts: str = ""
    """What was counted as a step."""
    seen_at: frozenset[str] = frozenset()
    """The traced functions at whose ends steps were seen: one of them may do more than another one does."""
    updates: bool | None = None
    """Whether that was an update of an optimizer."""
    places: frozenset[str] = frozenset()
    """Where random numbers were drawn, of a run that has pinned them."""

    @property
    def steps(self) -> int:
        """Up to which step anything was seen."""
        return max([0, *self.weights, *(step for seen in self.series.values() for step in seen)])

    @property
    def trains(self) -> bool:
        """Whether any weight has changed. Where none was seen, losses show it."""
        if not any(self.weights.values()):
            return any(map(is_loss, self.series))
        checksums: dict[int, int] = {}
        rows = (row for found in self.weights.values() for row in found.items())
        return any(checksums.setdefault(number, one.checksum) != one.checksum for number, one in rows)

    @classmethod
    def load(cls, path: str | Path) -> Numbers:
        with np.load(path, allow_pickle=False) as file:
            index = json.loads(str(file["index"]))
            weights = {
                int(count): {int(number): one for number, one in _snapshot(file, found).items()}
                for count, found in index["weights"].items()
            }
            states = {int(count): _snapshot(file, found) for count, found in index.get("states", {}).items()}
            series: dict[str, dict[int, list[float]]] = {}
            calls: dict[str, list[tuple[int, float]]] = {}
            for name, number in index["series"].items():
                for step, value, made in file[f"series/{number}"].reshape(-1, 3):
                    series.setdefault(name, {}).setdefault(int(step), []).append(float(value))
                    calls.setdefault(name, []).append((int(made), float(value)))
            outputs = {name: file[f"outputs/{number}"] for name, number in index["outputs"].items()}
            digests = {
                name: Digest(size, length, file[at]) for name, (size, length, at) in index.get("digests", {}).items()
            }
        return cls(
            weights,
            series,
            calls,
            outputs,
            digests,
            states,
            epochs=tuple(index.get("epochs", ())),
            made=index.get("made", 0),
            ended=index.get("ended", False),
            counts=index.get("counts", ""),
            seen_at=frozenset(index.get("seen_at", ())),
            updates=index.get("updates"),
            places=frozenset(index.get("places", ())),
        )

    def draws_elsewhere(self, other: Numbers) -> bool:
        """Whether the other run has drawn in places of its own instead of some of these: what it drew there cannot
        have been the same. A run that only leaves some out has done something else."""
        return bool(self.places - other.places) and bool(other.places - self.places)


def _snapshot(file: Any, rows: dict[str, list[Any]]) -> dict[str, Weights]:
    return {key: Weights(name, checksum, file[at], *lost) for key, (name, checksum, at, *lost) in rows.items()}
