"""Facts and checks become a Case: `flatout env`, and the `environment` of every run."""

from __future__ import annotations

from typing import Any

from flatout.environment.checks import catalogue
from flatout.environment.gather import gather, gather_cheaply
from flatout.environment.reading import Check, Facts, Reading
from flatout.environment.text import clean
from flatout.model.case import Case, Note
from flatout.model.evidence.outcomes import EnvironmentReading
from flatout.model.version import __version__
from flatout.plugins import Loaded


def readings(facts: Facts) -> list[tuple[Loaded[Check], Reading]]:
    """All readings. A check that fails on odd facts is itself one: it never hides the others."""
    found: list[tuple[Loaded[Check], Reading]] = []
    for check in catalogue().values():
        try:
            found += [(check, reading) for reading in check.spec.check(facts)]
        except Exception as error:
            words = clean(f"{type(error).__name__}: {error}")
            meaning = f"This check could not read the facts it was given ({words})."
            found.append((check, Reading(check.name, "not checked", "info", meaning, "Please report this.")))
    return found


def audit(quick: bool = False) -> Case:
    """Look at everything. `quick` leaves out what only TensorFlow knows, and its seconds of import."""
    return judge(gather(quick=quick))


def judge(facts: dict[str, Any]) -> Case:
    found = readings(facts)
    notes: tuple[Note, ...] = ()
    if not facts.get("tensorflow", {}).get("asked"):
        text = "TensorFlow itself was not asked: its build, its devices and its libraries are not in this audit."
        notes = (Note("info", text, "Leave --quick out to ask it."),) if _has_tensorflow(facts) else ()
    return Case(
        kind="env",
        environment=facts,
        evidence=tuple(_evidence(check, reading) for check, reading in found),
        verdict=verdict([reading for _, reading in found]),
        notes=notes,
        flatout=__version__,
    )


def summary(tensorflow_facts: dict[str, Any] | None) -> dict[str, Any]:
    """The facts that a run keeps, without starting a process, and under `readings` what is wrong with them.

    `tensorflow_facts` is what the run's child knows of its TensorFlow, in the names that `child.ask` gives
    (version, build, devices, onednn, …); all are optional.
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
