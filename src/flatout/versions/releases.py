"""The row of environments from a good one to a bad one: releases of a package, or packages of two lists one by one."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from flatout.model.errors import EnvironmentNotMade, InvalidOption
from flatout.versions.specification import Specification, with_packages

INDEX_SECONDS = 120.0
_PINNED = re.compile(r"([A-Za-z0-9][\w.-]*)(\[[\w,.-]+\])?==([\w.+!-]+)$")
_RELEASE = re.compile(r"\d+(\.\d+)*(\.?post\d+)?$")


@dataclass(frozen=True)
class Stop:
    """One environment of the row."""

    specification: Specification
    name: str
    """What it is called in the row: `tensorflow 2.17.0`, or the package that differs from the one before."""


def row(good: Specification, bad: Specification, versions: Sequence[str] = ()) -> list[Stop]:
    """From `good` to `bad`, both included. Raises `InvalidOption` where no row leads from one to the other."""
    if good.python != bad.python:
        raise InvalidOption("--good and --bad must name the same Python: only packages are gone through one by one.")
    old, new = (_pins(one) for one in (good, bad))
    changed = [name for name in dict.fromkeys((*old, *new)) if old.get(name) != new.get(name)]
    if not changed:
        raise InvalidOption("--good and --bad name the same packages: nothing lies between them.")
    if len(changed) == 1 and changed[0] in old and changed[0] in new:
        return _releases(good, changed[0], old, new, versions)
    return _one_by_one(good, bad, old, new, changed)


def between(known: Sequence[str], first: str, last: str) -> list[str]:
    """The releases from one to another, both included, in their order; pre-releases are left out."""
    low, high = _order(first), _order(last)
    inside = [one for one in known if _RELEASE.fullmatch(one) and low < _order(one) < high]
    return [first, *sorted(dict.fromkeys(inside), key=_order), last]


def released(name: str) -> list[str]:
    """All releases of a package that fit this Python, as pip lists them."""
    command = [sys.executable, "-m", "pip", "index", "versions", "--disable-pip-version-check", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INDEX_SECONDS)
    except (OSError, subprocess.SubprocessError):
        done = None
    found = re.search(r"^Available versions: (.*)$", done.stdout, re.MULTILINE) if done is not None else None
    if found is None:
        raise EnvironmentNotMade(
            f"pip does not list the releases of {name}. Name those to try yourself: --versions 2.16.1,2.17.0."
        )
    return [one.strip() for one in found[1].split(",")]


def _releases(
    good: Specification, name: str, old: dict[str, str], new: dict[str, str], versions: Sequence[str]
) -> list[Stop]:
    first, last = (_PINNED.match(pins[name]) for pins in (old, new))
    if first is None or last is None:
        raise InvalidOption(f"Give {name} as {name}==VERSION in both --good and --bad.")
    if _order(first[3]) > _order(last[3]):
        raise InvalidOption(f"--good has {name} {first[3]} and --bad {last[3]}, which is older. Swap them.")
    known = list(versions) or released(name)
    stops = []
    for version in between(known, first[3], last[3]):
        pins = {**old, name: f"{first[1]}{first[2] or ''}=={version}"}
        text = " ".join(filter(None, (good.python, *pins.values())))
        stops.append(Stop(with_packages(good, tuple(pins.values()), text), f"{name} {version}"))
    return stops


def _one_by_one(
    good: Specification, bad: Specification, old: dict[str, str], new: dict[str, str], changed: Sequence[str]
) -> list[Stop]:
    """The packages that differ are changed one after the other."""
    pins, stops = dict(old), [Stop(good, "all as in --good")]
    for number, name in enumerate(changed, 1):
        pins = {key: value for key, value in {**pins, name: new.get(name, "")}.items() if value}
        text = f"{good.text} with {number} of {len(changed)} packages of {bad.text}"
        told = f"{old.get(name, f'no {name}')} → {new.get(name, f'no {name}')}"
        stops.append(Stop(with_packages(good, tuple(pins.values()), text), told))
    return stops


def _pins(one: Specification) -> dict[str, str]:
    """Requirements by the name of their package."""
    found = {}
    for text in one.requirements:
        name = re.match(r"[A-Za-z0-9][\w.-]*", text)
        found[name[0].lower().replace("_", "-") if name else text] = text
    if not found:
        raise InvalidOption(f"{one.text!r} names no packages. Give them with versions: tensorflow==2.15.")
    return found


def _order(version: str) -> tuple[int, ...]:
    numbers = [int(one) for one in re.findall(r"\d+", version)]
    while numbers and numbers[-1] == 0:
        numbers.pop()  # 2.15 and 2.15.0 are the same release
    return tuple(numbers)
