"""Is it the same program on both sides, and what differs in what it ran on."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flatout.store.facts import LEVELS, Level
from flatout.store.run import Run


@dataclass(frozen=True)
class Difference:
    what: str
    before: str
    after: str
    level: Level


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
            level = "settings" if variable else LEVELS.get(name, "software")
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
