"""What differs between the two sides: in the program, and in the environment that it ran in."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from flatout.store.environment_facts import LEVELS, Level
from flatout.store.run_summary import Run


@dataclass(frozen=True)
class Difference:
    what: str
    before: str
    after: str
    level: Level


def machine_description(facts: Mapping[str, str]) -> str:
    """The machine in a few words. Runs on different machines are not repeats of each other."""
    names = ("processor", "architecture", "cores", "core quota", "memory limit", "GPUs")
    known = [f"{facts[name]} cores" if name == "cores" else facts[name] for name in names if facts.get(name)]
    return " · ".join(known)


def environment_differences(before: Sequence[Run], after: Sequence[Run]) -> tuple[Difference, ...]:
    """Facts that differ between the sides. A fact that only one side has is not counted as a difference."""
    names = dict.fromkeys(name for run in (*before, *after) for name in run.facts)
    found = []
    for name in names:
        old, new = _values(before, name), _values(after, name)
        variable = name.startswith("$")  # an unset environment variable is a setting too
        if old != new and (variable or (old and new)):
            level = "settings" if variable else LEVELS.get(name, "software")
            found.append(Difference(name, _joined(old), _joined(new), level))
    order = {"machine": 0, "software": 1, "settings": 2}
    return tuple(sorted(found, key=lambda one: order[one.level]))


def program_differences(before: Sequence[Run], after: Sequence[Run]) -> tuple[Difference, ...]:
    """What differs in the program. A change of the source is what a comparison is usually made for."""
    found = []
    compared: tuple[tuple[str, Level, Callable[[Run], str]], ...] = (
        ("program", "other", lambda run: run.program),
        ("arguments", "other", lambda run: shlex.join(run.arguments)),
        ("injected levers", "changed", lambda run: ", ".join(run.levers)),
        ("what a step is", "other", lambda run: run.found_by),
        ("source", "changed", _source),
    )
    for what, level, text in compared:
        old, new = (tuple(dict.fromkeys(map(text, side))) for side in (before, after))
        if set(old) != set(new) and (what != "source" or (all(old) and all(new))):
            found.append(Difference(what, _joined(old), _joined(new), level))
    return tuple(found)


def _source(run: Run) -> str:
    """The commit and the uncommitted changes on top of it, or else the checksum of the file."""
    if run.commit:
        return run.commit[:10] + (f" with changes {run.changes[:7]}" if run.changes else "")
    return f"sha256 {run.sha256[:10]}" if run.sha256 else ""


def _values(side: Sequence[Run], name: str) -> tuple[str, ...]:
    return tuple(sorted({run.facts[name] for run in side if name in run.facts}))


def _joined(values: Sequence[str]) -> str:
    return " or ".join(values) if any(values) else "(none)"
