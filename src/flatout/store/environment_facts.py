"""The facts of a case's environment that can change how long a step takes, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

Level = Literal["machine", "software", "settings", "other", "changed"]
"""What a difference means for a comparison.

machine: times are not comparable. software, settings: a possible reason for a change of speed. other: a different
program. changed: the same program with another source or other levers."""

FACTS: tuple[tuple[str, Level, tuple[str, ...]], ...] = (
    ("processor", "machine", ("cpu", "model")),
    ("cores", "machine", ("cores", "affinity")),
    ("core quota", "machine", ("cores", "quota")),
    ("memory limit", "machine", ("memory", "limit")),
    ("architecture", "machine", ("system", "machine")),
    ("container", "machine", ("cpu", "container")),
    ("clock governor", "machine", ("cpu", "governor")),
    ("kernel", "software", ("system", "release")),
    ("Python", "software", ("python",)),
    ("TensorFlow", "software", ("tensorflow_version",)),
    ("Keras", "software", ("keras_version",)),
    ("tf_keras", "software", ("tf_keras_version",)),
    ("numpy", "software", ("packages", "versions", "numpy")),
    ("intra-op threads", "settings", ("tensorflow", "intra_op_threads")),
    ("inter-op threads", "settings", ("tensorflow", "inter_op_threads")),
)
"""(name, level of a difference, path in the environment of a case)"""

LEVELS: dict[str, Level] = {name: level for name, level, _ in FACTS} | {
    "memory": "machine",
    "GPUs": "machine",
    "devices": "machine",
}


def facts_of(environment: Mapping[str, Any]) -> dict[str, str]:
    """The known facts of an environment as text."""
    found = {name: _at(environment, path) for name, _, path in FACTS}
    total = environment.get("memory", {}).get("total") if isinstance(environment.get("memory"), dict) else None
    if isinstance(total, (int, float)):
        found["memory"] = f"{total / 2**30:.0f} GiB"
    tensorflow = environment.get("tensorflow")
    cards = tensorflow.get("gpu") if isinstance(tensorflow, dict) else None
    if isinstance(cards, list) and cards:
        found["GPUs"] = ", ".join(str(card.get("device_name") if isinstance(card, dict) else card) for card in cards)
    devices = _at(environment, ("tensorflow", "devices"))
    if devices:
        found["devices"] = devices
    variables = environment.get("variables")
    if isinstance(variables, dict):
        found |= {f"${name}": str(value) for name, value in variables.items()}
    return {name: text[:200] for name, text in found.items() if text}


def _at(environment: Mapping[str, Any], path: Sequence[str]) -> str:
    value: Any = environment
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
