"""The same program in two environments, raced as `tune` races levers: all sides are alive, one runs at a time.

The first environment runs twice, as both baselines: how far two processes of the same thing lie apart is measured in
the same rounds. Between two groups of rounds everything is started anew.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flatout.measure.race import Verdict
from flatout.model.case import Case
from flatout.model.errors import ProgramUnusable
from flatout.model.queries import step_kind
from flatout.model.vocabulary import StreamKind
from flatout.observe.streams import RANK
from flatout.process.watchdog import Watchdog
from flatout.report.progress import Progress
from flatout.trial.child_process import Launch
from flatout.tune.contestant import Contestant
from flatout.tune.race import Race, warm_steps_of
from flatout.tune.scout import ranked
from flatout.tune.starter import START_SECONDS, Starter

MOST_GROUPS = 4
FEWEST_GROUPS = 2
VARYING = 3.0
"""As for a tune: the slow steps over the quick ones from which all sides are kept at the same steps."""


@dataclass(frozen=True)
class Entrant:
    """One side of a race."""

    launch: Launch
    title: str
    case: Case
    """As it was observed there."""
    ended: bool
    """Whether the program came to its end."""


@dataclass(frozen=True)
class Result:
    verdict: Verdict
    before_ms: float
    after_ms: float
    groups: int


def contest(
    before: Entrant, after: Entrant, directory: Path, watchdog: Watchdog, progress: Progress, end: float
) -> Result:
    """Raises `ProgramUnusable` where one side cannot be held between its steps."""
    launches = _alike((before, after))
    varies = any(one.case.steps is not None and _varies(one.case) for one in (before, after))
    counts = [one.case.steps.count for one in (before, after) if one.ended and one.case.steps is not None]
    count = min(counts, default=None)
    warm = warm_steps_of(count) if count is not None or varies else 0
    first, second = (replace(launch, warm_steps=warm) for launch in launches)
    baselines = [Contestant(first, "before"), Contestant(first, "before, again")]
    other = Contestant(second, "after")
    longest = max(START_SECONDS, *(30 + 1.5 * one.case.program.seconds for one in (before, after)))
    starter = Starter(directory, watchdog, None, None, progress.say, start_seconds=longest)
    race = Race(baselines, starter, steps_of_program=count, warm_steps=warm, varies=varies, show=progress.show)
    groups = 0
    try:
        while groups < MOST_GROUPS and _is_time(race, groups, end):
            race.confirm([other], 1, race.rounds_of_group())
            groups += 1
            _check(race, other, before, after)
        return Result(race.claim(other), _ms(baselines), _ms([other]), groups)
    finally:
        race.close()


def _is_time(race: Race, groups: int, end: float) -> bool:
    return groups < FEWEST_GROUPS or time.monotonic() + race.seconds_to_confirm(1, 1) < end


def _check(race: Race, other: Contestant, before: Entrant, after: Entrant) -> None:
    """A side that has left the race by itself ends it."""
    for one, side in ((race.baselines[0], before), (other, after)):
        if one.broken or not any(one.blocks):
            raise ProgramUnusable(
                f"With {side.title} the program could not be timed by its steps: {one.note or 'none was seen'}."
            )


def _alike(sides: Sequence[Entrant]) -> list[Launch]:
    """What counts as a step must be the same on both sides: the lower kind, where the environments show two."""
    kinds = [step_kind(one.case) for one in sides]
    lowest = min(sides, key=lambda one: RANK.get(_kind(step_kind(one.case)), 0))
    if len(set(kinds)) > 1:
        model = ranked(lowest.launch, lowest.case)
        higher = tuple(kind for kind in RANK if RANK[kind] > RANK[_kind(step_kind(lowest.case))])
        return [replace(one.launch, least_step=model.least_step, not_steps=higher) for one in sides]
    return [ranked(one.launch, sides[0].case) for one in sides]


def _kind(kind: StreamKind | None) -> StreamKind:
    return kind or "input"


def _varies(case: Case) -> bool:
    return case.steps is not None and 0 < case.steps.ms.p10 < case.steps.ms.p90 / VARYING


def _ms(sides: Sequence[Contestant]) -> float:
    known = [ms for one in sides if (ms := one.step_ms()) is not None]
    return sum(known) / len(known) if known else 0.0
