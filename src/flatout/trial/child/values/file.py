"""The file with the values of a trial: `numbers.npz`, arrays and an index of them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from flatout.trial.child.values.weights import Weight, plain

NAME = "numbers.npz"


def write(
    directory: str,
    snapshots: Mapping[int, Mapping[int, Weight]],
    series: Mapping[str, Sequence[tuple[int, Any, int]]],
    outputs: Mapping[str, Sequence[Any]],
    places: Sequence[str] = (),
) -> None:
    """Replace the file as a whole: the process may be killed at any moment."""
    import numpy as np

    arrays: dict[str, Any] = {}
    weights: dict[str, dict[str, list[Any]]] = {}
    for count, snapshot in snapshots.items():
        rows = weights[str(count)] = {}
        for index, (name, checksum, sample) in snapshot.items():
            key = f"weights/{count}/{index}"
            arrays[key] = sample
            rows[str(index)] = [name, checksum, key]
    for number, found in enumerate(series.values()):
        arrays[f"series/{number}"] = np.array([[call, _scalar(value), made] for call, value, made in found])
    for number, parts in enumerate(outputs.values()):
        arrays[f"outputs/{number}"] = parts[0]
    table = {"weights": weights, "series": _numbered(series), "outputs": _numbered(outputs), "places": list(places)}
    arrays["index"] = np.array(json.dumps(table))
    path = os.path.join(directory, NAME)
    with open(f"{path}.new", "wb") as stream:
        np.savez(stream, **arrays)
    os.replace(f"{path}.new", path)


def flat(parts: Sequence[Any], most: int) -> Any:
    """The elements of all parts, one after the other."""
    import numpy as np

    return np.concatenate([plain(_numpy(part)).reshape(-1) for part in parts])[:most]


def _numbered(table: Mapping[str, Any]) -> dict[str, int]:
    return {name: number for number, name in enumerate(table)}


def _numpy(value: Any) -> Any:
    return value._numpy() if hasattr(value, "_numpy") else value


def _scalar(value: Any) -> float:
    try:
        return float(_numpy(value))
    except (TypeError, ValueError):
        return float(value.numpy()) if hasattr(value, "numpy") else float("nan")
