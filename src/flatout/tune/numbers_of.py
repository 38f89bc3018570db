"""Whether a contestant computes what the baseline computes: from the race itself, or from a calm run of both."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

from flatout.measure import parity
from flatout.trial.child_process import ChildProcess, Ended, Launch, Overdue
from flatout.tune.contestant import Contestant
from flatout.tune.race import Race

FILE = "numbers.npz"
CALM_SECONDS = 90.0
CALM_STEPS = 40


def compare(race: Race, one: Contestant, directory: Path) -> parity.Parity:
    """What the race recorded decides where it can. Else both run once more, seeded alike and without dropout: a
    compiler may draw other random numbers and still be right. It may also round in another way."""
    baseline, twin = (_load(other.directories) for other in race.baselines)
    trial = _load(one.directories)
    found = parity.Parity("unknown", None, "no numbers could be compared")
    seen = 0
    if baseline is not None and trial is not None:
        found = parity.compare(baseline, trial, twin)
        if found.verdict in ("exact", "reassociated"):
            return found
        seen = min(baseline.steps, trial.steps)
    place = directory / "calm" / race.directory.name  # another race may have another baseline
    launch = race.baselines[0].launch
    calm_base = _calm(launch, place / "baseline", race)
    calm_twin = _calm(launch, place / "twin", race)
    calm_trial = _calm(one.launch, place / one.directories[0].name, race)
    if calm_base is None or calm_trial is None:
        return found
    if min(calm_base.steps, calm_trial.steps) < min(seen, CALM_STEPS) // 2:
        return found  # a calm run that ended too soon does not acquit what the race has seen
    found = parity.compare(calm_base, calm_trial, calm_twin)
    if found.verdict in ("exact", "reassociated", "unknown"):
        return found
    # More than rounding, as it seems: what does the program make of rounding?
    shaken = _calm(replace(launch, shaken=True), place / "shaken", race)
    return parity.compare(calm_base, calm_trial, calm_twin, shaken)


def _load(directories: list[Path]) -> parity.Numbers | None:
    for directory in directories:
        if (directory / FILE).exists():
            return parity.Numbers.load(directory / FILE)
    return None


def _calm(launch: Launch, directory: Path, race: Race) -> parity.Numbers | None:
    if not (directory / FILE).exists():
        child = ChildProcess(replace(launch, calm=True), directory, race.warden, race.nurseries)
        try:
            with contextlib.suppress(Ended, Overdue):
                child.answer(CALM_SECONDS)
                child.go(CALM_STEPS)
                child.answer(CALM_SECONDS)
        finally:
            child.end()
    return _load([directory])
