"""The winner at the other batch sizes that the user named: how fast it is, in the setting that is best there.

Each has a loader of its own beside `load.py`, where it is another one: what is told of a batch is what that loader
gives. It is run on samples before anything is told.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flatout.measure.interval import confidence_for
from flatout.measure.race import Race, Rules, TimeLimit, View, compare
from flatout.measure.race.processes import Fit
from flatout.model.case import Latency
from flatout.optimize import artefact
from flatout.optimize.builder import Builder
from flatout.optimize.contestant import Contestant
from flatout.optimize.delivery import try_for_batch
from flatout.process.worker import WorkFailed

ROUNDS = 8
ROUND_SECONDS = 0.3


@dataclass(frozen=True)
class AtBatch:
    """At one batch size: the winner with the setting that is best there, and the baseline."""

    one: Contestant
    base: Contestant
    settings: int
    """So many were raced, of which this one is the fastest: its interval is wider for that."""
    loader: str
    """The file of the artefact that serves it so."""

    def latency(self, fit: Fit) -> Latency | None:
        """`fit`: how far processes lie apart."""
        found = self.one.latency()
        if found is None:
            return None
        confidence = confidence_for(self.settings)
        once = None if self.one.candidate.is_model_itself else compare(self.base, self.one, confidence)
        speedup = fit.widened(once, confidence) if once is not None else None
        return replace(found, speedup=speedup, setting=dict(self.one.setting))


def seconds(opening: float) -> float:
    """What it takes, about, to measure winner (in two settings) and baseline at another batch size."""
    return 3 * (opening + ROUNDS * ROUND_SECONDS)


def measure(
    winner: Contestant,
    baseline: Contestant,
    builder: Builder,
    made: Path,
    deadline: float,
    show: Callable[[View], None] = lambda view: None,
) -> tuple[list[AtBatch], list[str]]:
    """What was measured, and notes on what could not be. `made`: the artefact, which gets a loader for each."""
    found, notes = list[AtBatch](), list[str]()
    for batch in builder.subject.batches:
        if batch == winner.batch:
            continue
        if time.monotonic() > deadline:
            notes.append(f"There was no time left to measure batch {batch}: give more with --budget.")
            continue
        base = Contestant(baseline.candidate, {}, batch)
        ways = [Contestant(winner.candidate, setting, batch) for setting in winner.candidate.settings]
        best, problem = _raced(base, ways, builder, deadline, show)
        if best is None:
            notes.append(f"Batch {batch} could not be measured: {problem}")
            continue
        loader, problem = _loader(best, winner, builder, made)
        if problem:
            notes.append(f"Batch {batch} is answered by {artefact.LOADER} alone, which was not timed for it: {problem}")
        else:
            found.append(AtBatch(best, base, len(ways), loader))
    return found, notes


def _raced(
    base: Contestant, ways: Sequence[Contestant], builder: Builder, deadline: float, show: Callable[[View], None]
) -> tuple[Contestant | None, str]:
    """The fastest way; or none, and why."""
    opened = [one for one in (base, *ways) if _try_to_open(one, builder)]
    if base in opened and len(opened) > 1:
        rules = Rules("all-rounds", ROUNDS, len(opened) - 1)
        Race([base], show=show).run(opened[1:], rules, TimeLimit(enough=deadline))
    for one in opened:
        one.close()
    timed = [one for one in ways if not one.broken and one.call_ms() is not None]
    if base.broken or not timed:
        return None, next((one.note for one in (base, *ways) if one.broken), "it was not timed")
    return min(timed, key=lambda one: one.call_ms() or float("inf")), ""


def _try_to_open(one: Contestant, builder: Builder) -> bool:
    try:
        builder.open(one)
    except WorkFailed as error:
        one.fail(error)
    return one.active


def _loader(one: Contestant, winner: Contestant, builder: Builder, made: Path) -> tuple[str, str]:
    """The file that serves it in this way; or why there is none."""
    route = winner.candidate.route
    if route.loader(one.setting, one.batch) == route.loader(winner.setting, winner.batch):
        return artefact.LOADER, ""
    name = f"load_batch_{one.batch}.py"
    try:
        artefact.write_loader(one, builder.subject, made, name)
        problem = try_for_batch(one, builder, made, name)
    except (WorkFailed, OSError, ValueError) as error:
        problem = str(error)
    if problem:
        (made / name).unlink(missing_ok=True)
    return name, problem
