"""Is it the same program on both sides, and what differs in what it ran on."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flatout.compare.run import Run

Level = str
"""machine: the numbers are of another one. software, settings: may be the reason. other, changed: of the program."""

_FACTS: tuple[tuple[str, Level, tuple[str, ...]], ...] = (
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
"""What it is called, what it says about the comparison, and where it stands in a case's environment."""

_LEVELS = {name: level for name, level, _ in _FACTS} | {"memory": "machine", "GPUs": "machine", "devices": "machine"}


@dataclass(frozen=True)
class Difference:
    what: str
    before: str
    after: str
    level: Level


def facts_of(environment: Mapping[str, Any]) -> dict[str, str]:
    """The parts of an environment that can change how long a step takes, as plain text."""
    found = {name: _at(environment, path) for name, _, path in _FACTS}
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


def machine_of(facts: Mapping[str, str]) -> str:
    """The machine in a few words; runs of different machines are no repeats of each other."""
    names = ("processor", "architecture", "cores", "core quota", "memory limit", "GPUs")
    told = [f"{facts[name]} cores" if name == "cores" else facts[name] for name in names if facts.get(name)]
    return " · ".join(told)


def of_environment(before: Sequence[Run], after: Sequence[Run]) -> tuple[Difference, ...]:
    """The facts that are not the same on both sides. What only one side knows is not a difference."""
    names = dict.fromkeys(name for run in (*before, *after) for name in run.facts)
    found = []
    for name in names:
        old, new = _values(before, name), _values(after, name)
        variable = name.startswith("$")  # a variable that is not set is a setting too
        if old != new and (variable or (old and new)):
            level = "settings" if variable else _LEVELS.get(name, "software")
            found.append(Difference(name, _told(old), _told(new), level))
    order = {"machine": 0, "software": 1, "settings": 2}
    return tuple(sorted(found, key=lambda one: order[one.level]))


def of_program(before: Sequence[Run], after: Sequence[Run]) -> tuple[Difference, ...]:
    """What is not the same about the program. A change of its source is what a comparison is usually about."""
    found = []
    for what, level, text in (
        ("program", "other", lambda run: run.program),
        ("arguments", "other", lambda run: shlex.join(run.arguments)),
        ("injected levers", "changed", lambda run: ", ".join(run.levers)),
        ("what a step is", "other", lambda run: run.found_by),
        ("source", "changed", _source),
    ):
        old, new = (tuple(dict.fromkeys(map(text, side))) for side in (before, after))
        if set(old) != set(new) and (what != "source" or (all(old) and all(new))):
            found.append(Difference(what, _told(old), _told(new), level))
    return tuple(found)


def _source(run: Run) -> str:
    """The commit and what was changed on top of it, or else the file's checksum."""
    if run.commit:
        return run.commit[:10] + (f" with changes {run.changes[:7]}" if run.changes else "")
    return f"sha256 {run.sha256[:10]}" if run.sha256 else ""


def _values(side: Sequence[Run], name: str) -> tuple[str, ...]:
    return tuple(sorted({run.facts[name] for run in side if name in run.facts}))


def _told(values: Sequence[str]) -> str:
    return " or ".join(values) if any(values) else "(none)"


def _at(environment: Mapping[str, Any], path: Sequence[str]) -> str:
    value: Any = environment
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
