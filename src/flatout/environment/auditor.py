"""Runs the checks on the facts: a Case for `flatout env`, and the `environment` of every run."""

from __future__ import annotations

from typing import Any

from flatout.environment.checks import catalogue
from flatout.environment.gather import gather, gather_cheaply
from flatout.environment.reading import Check, Facts, Reading
from flatout.model.case import Case, Note
from flatout.model.evidence.outcomes import EnvironmentReading
from flatout.model.text import clean
from flatout.model.version import __version__
from flatout.plugins import Loaded


def readings(facts: Facts) -> list[tuple[Loaded[Check], Reading]]:
    """All readings. An error in a check becomes a reading too, and does not hide the others."""
    found: list[tuple[Loaded[Check], Reading]] = []
    for check in catalogue().values():
        try:
            found += [(check, reading) for reading in check.spec.check(facts)]
        except Exception as error:
            words = clean(f"{type(error).__name__}: {error}")
            meaning = f"This check failed ({words})."
            found.append((check, Reading(check.name, "not checked", "info", meaning, "Please report this.")))
    return found


def audit(quick: bool = False) -> Case:
    """Run all checks. `quick` skips the facts that need an import of TensorFlow, which takes seconds."""
    return judge(gather(quick=quick))


def judge(facts: dict[str, Any]) -> Case:
    found = readings(facts)
    notes: tuple[Note, ...] = ()
    if not facts.get("tensorflow", {}).get("asked"):
        text = "TensorFlow was not imported: its build, its devices and its libraries are not in this audit."
        notes = (Note("info", text, "Run without --quick to include them."),) if _has_tensorflow(facts) else ()
    return Case(
        kind="env",
        environment=facts,
        evidence=tuple(_evidence(check, reading) for check, reading in found),
        verdict=verdict([reading for _, reading in found]),
        notes=notes,
        flatout=__version__,
    )


def summary(tensorflow_facts: dict[str, Any] | None) -> dict[str, Any]:
    """The facts that a run keeps, read without starting a process, and under `readings` the problems.

    `tensorflow_facts` comes from the child of the run, with the names that `child.ask` uses (version, build,
    devices, onednn, …); all are optional.
    """
    facts = gather_cheaply(tensorflow_facts)
    wrong = [(check, reading) for check, reading in readings(facts) if reading.status in ("warning", "fault")]
    facts["readings"] = [
        {"check": check.name, "value": reading.value, **_data(check, reading)} for check, reading in wrong
    ]
    return facts


def verdict(found: list[Reading]) -> str:
    faults = sum(reading.status == "fault" for reading in found)
    warnings = sum(reading.status == "warning" for reading in found)
    if not faults and not warnings:
        return "Nothing here holds TensorFlow back."
    parts = [_count(faults, "fault"), _count(warnings, "warning")]
    return " and ".join(part for part in parts if part) + "."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}" if number else ""


def _has_tensorflow(facts: Facts) -> bool:
    return any(name.startswith(("tensorflow", "tf-nightly")) for name in facts.get("packages", {}).get("versions", {}))


def _evidence(check: Loaded[Check], reading: Reading) -> EnvironmentReading:
    meaning = clean(reading.meaning, 600)
    return EnvironmentReading(
        clean(reading.value, 300),
        name=reading.name,
        status=reading.status,
        meaning=meaning,
        todo=clean(reading.todo, 600),
        group=check.spec.group,
        source=check.name,
        note=meaning,
    )


def _data(check: Loaded[Check], reading: Reading) -> dict[str, Any]:
    return {
        "name": reading.name,
        "status": reading.status,
        "meaning": clean(reading.meaning, 600),
        "todo": clean(reading.todo, 600),
        "group": check.spec.group,
    }
