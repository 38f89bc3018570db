"""The file with the values of a trial: `numbers.npz`, arrays and an index of them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flatout.trial.child.values.digests import Digest
from flatout.trial.child.values.weights import Weight, plain

NAME = "numbers.npz"


@dataclass(frozen=True)
class Kept:
    """What is written."""

    snapshots: Mapping[int, Mapping[int, Weight]]
    states: Mapping[int, Mapping[str, Weight]]
    series: Mapping[str, Sequence[tuple[int, Any, int]]]
    outputs: Mapping[str, Sequence[Any]]
    digests: Mapping[str, Digest]


def write(directory: str, kept: Kept, extent: Mapping[str, Any]) -> None:
    """Replace the file as a whole: the process may be killed at any moment. `extent`: how far the run has come."""
    import numpy as np

    arrays: dict[str, Any] = {}
    weights = {str(count): _rows(arrays, f"weights/{count}", found) for count, found in kept.snapshots.items()}
    others = {str(count): _rows(arrays, f"states/{count}", found) for count, found in kept.states.items()}
    for number, found in enumerate(kept.series.values()):
        rows = [[call, known, made] for call, value, made in found if (known := scalar(value)) is not None]
        arrays[f"series/{number}"] = np.array(rows, np.float64)
    for number, parts in enumerate(kept.outputs.values()):
        arrays[f"outputs/{number}"] = parts[0]
    digests: dict[str, list[Any]] = {}
    for number, (name, one) in enumerate(kept.digests.items()):
        arrays[f"digests/{number}"] = one.rows()
        digests[name] = [one.size, one.length, f"digests/{number}"]
    table = {
        **extent,
        "weights": weights,
        "states": others,
        "series": _numbered(kept.series),
        "outputs": _numbered(kept.outputs),
        "digests": digests,
    }
    arrays["index"] = np.array(json.dumps(table))
    path = os.path.join(directory, NAME)
    with open(f"{path}.new", "wb") as stream:
        np.savez(stream, **arrays)
    os.replace(f"{path}.new", path)


def _rows(arrays: dict[str, Any], where: str, found: Mapping[Any, Weight]) -> dict[str, list[Any]]:
    """What the index says of a snapshot; its samples are added to `arrays`."""
    rows: dict[str, list[Any]] = {}
    for number, (key, (name, checksum, sample, lost)) in enumerate(found.items()):
        arrays[f"{where}/{number}"] = sample
        rows[str(key)] = [name, checksum, f"{where}/{number}", lost]
    return rows


def flat(parts: Sequence[Any], most: int) -> Any:
    """The elements of all parts, one after the other."""
    import numpy as np

    return np.concatenate([plain(_numpy(part)).reshape(-1) for part in parts])[:most]


def _numbered(table: Mapping[str, Any]) -> dict[str, int]:
    return {name: number for number, name in enumerate(table)}


def array(value: Any) -> Any:
    """The elements of a tensor or an array."""
    return plain(_numpy(value))


def _numpy(value: Any) -> Any:
    return value._numpy() if hasattr(value, "_numpy") else value


def scalar(value: Any) -> float | None:
    """The number that a tensor or an array of one element holds; None where there is none to read. NaN is one that the
    program has computed."""
    try:
        return float(_numpy(value))
    except (TypeError, ValueError):
        return float(value.numpy()) if hasattr(value, "numpy") else None
