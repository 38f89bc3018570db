"""Whether a contestant computes what the baseline computes: by what the race recorded, or by a run of both apart."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from flatout.measure import parity
from flatout.trial.child_process import ChildProcess, Ended, Launch, Overdue
from flatout.tune.contestant import Contestant
from flatout.tune.starter import Starter

FILE = "numbers.npz"
APART_SECONDS = 90.0
APART_STEPS = 40


def compare(baselines: Sequence[Contestant], one: Contestant, starter: Starter, directory: Path) -> parity.Parity:
    """What the race recorded decides where it can. Otherwise both run once more, with the same seed and without
    dropout: a compiler may draw other random numbers and still be right. It may also round in another way.

    `directory`: where the runs without dropout are kept; a baseline is run once for all contestants of its race.
    """
    baseline, twin = (_load(other.directories) for other in baselines)
    trial = _load(one.directories)
    found = parity.Parity("unknown", None, "no numbers could be compared")
    seen = 0
    if baseline is not None and trial is not None:
        found = parity.compare(baseline, trial, twin)
        if found.verdict in ("exact", "reassociated"):
            return found
        seen = min(baseline.steps, trial.steps)
    apart = directory / "without-dropout" / starter.directory.name  # another race may have another baseline
    launch = baselines[0].launch
    base = _without_dropout(launch, apart / "baseline", starter)
    twin_apart = _without_dropout(launch, apart / "twin", starter)
    trial_apart = _without_dropout(one.launch, apart / one.directories[0].name, starter)
    if base is None or trial_apart is None:
        return found
    if min(base.steps, trial_apart.steps) < min(seen, APART_STEPS) // 2:
        return found  # a run that ended too soon does not outweigh what the race has recorded
    found = parity.compare(base, trial_apart, twin_apart)
    if found.verdict in ("exact", "reassociated", "unknown"):
        return found
    # More than rounding, as it seems. How far does this program deviate by rounding alone?
    perturbed = _without_dropout(replace(launch, perturbed=True), apart / "perturbed", starter)
    return parity.compare(base, trial_apart, twin_apart, perturbed)


def _load(directories: Sequence[Path]) -> parity.Numbers | None:
    for directory in directories:
        if (directory / FILE).exists():
            return parity.Numbers.load(directory / FILE)
    return None


def _without_dropout(launch: Launch, directory: Path, starter: Starter) -> parity.Numbers | None:
    """The numbers of a run without dropout."""
    if not (directory / FILE).exists():
        child = ChildProcess(replace(launch, without_dropout=True), directory, starter.watchdog, starter.fork_servers)
        try:
            with contextlib.suppress(Ended, Overdue):
                child.warm(APART_SECONDS)
                child.go(APART_STEPS)
                child.block(APART_SECONDS)
        finally:
            child.end()
    return _load([directory])
