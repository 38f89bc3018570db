"""Contestants whose clock is made up, for the real races: no process is started and no time is spent.

The logarithm of a block's time is that of the program, plus an effect of the process, drawn anew at each start, plus
the noise of the block. Both are normal. The truth is known, so it can be counted how often an interval holds it.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from flatout.measure.parity import Parity
from flatout.model.case import Case, Trial
from flatout.report.progress import Progress
from flatout.trial.child_process import Launch
from flatout.tune import confirmation, exploration, parity, plan
from flatout.tune.clock import Clock
from flatout.tune.confirmation import MOST_LEVERS, Confirmation
from flatout.tune.contestant import Block, Contestant
from flatout.tune.exploration import Exploration
from flatout.tune.plan import Plan
from flatout.tune.race import Race
from flatout.tune.request import TuneRequest
from flatout.tune.trials import Trials

STEP_SECONDS = 0.01
CALLS = 4


@dataclass
class Noise:
    block: float
    process: float
    random: random.Random


@dataclass(eq=False)
class Simulated(Contestant):
    noise: Noise = field(kw_only=True)
    seconds: float = field(default=STEP_SECONDS, kw_only=True)
    effect: float = field(default=0.0, kw_only=True)
    """Of the process that is alive."""

    def run_block(self) -> Block:
        if self.child is None:
            SimulatedStarter().start([self])
        seconds = self.seconds * math.exp(self.effect + self.noise.random.gauss(0.0, self.noise.block))
        return Block([seconds] * CALLS, CALLS, CALLS * seconds)

    def dropped(self) -> int:
        return 0

    def unit_times(self) -> list[float | None]:
        return [block.times[0] if block is not None else None for block in self.blocks]

    usual_times = cpu_times = unit_times


class SimulatedStarter:
    """Draws the effect of a process in place of starting one."""

    memory_limit = None
    keeps = False

    def __init__(self) -> None:
        self.took: list[float] = [5.0]

    def start(self, contestants: Any) -> None:
        for one in contestants:
            if one.active:
                one.starts += 1
                one.effect = one.noise.random.gauss(0.0, one.noise.process)
                one.child = SimpleNamespace(end=lambda: None, peak_bytes=0, group=0)

    def say(self, text: str) -> None:
        pass


class SimulatedTune:
    """The exploration and the confirmation of `tune`, with levers of known ratios."""

    def __init__(self, noise: Noise, levers: dict[str, float], patched: bool = True) -> None:
        self.noise = noise
        self.levers = levers
        self.with_patch = patched
        journal: Any = SimpleNamespace(
            trials={}, keep=self._keep, known=lambda stage, levers: self.known(stage, levers)
        )
        self.journal = journal
        progress = Progress(600.0, quiet=True)
        clock = Clock(1e6)
        self.trials = Trials(journal, progress, Path("."), clock)
        self.races: list[Race] = []
        self.context: Any = SimpleNamespace(
            request=TuneRequest("train.py", levers=tuple(levers)), directory=Path("."), progress=progress,
            launch=Launch(()), clock=clock, journal=journal, trials=self.trials, case=Case("tune"),
            races=self.races, notes=[], ended_after=None, varies=False, race=self._race, contestant=self._contestant,
            patched=self._patched, alive_at_once=lambda race: 12, learn_of=lambda contestants, made: False,
            combinable=lambda text: True, steps_of_program=None,
            seconds_of_program=None, spread=None,
        )  # fmt: skip

    def explore(self) -> list[str]:
        return Exploration(self.context).run()

    def confirm(self, winners: list[str]) -> tuple[Trial, bool]:
        """The trial of the set to be claimed, and whether it is; where nothing has won, of all winners together."""
        confirmation = Confirmation(self.context)
        claims = confirmation.run(winners).sets
        levers = claims[0].levers if claims else confirmation.finalist or plan.combinations(winners)[-1][:MOST_LEVERS]
        found = [one for one in self.trials.found if one.stage == "combination" and one.levers == levers]
        return found[-1], bool(claims)

    def truth(self, levers: tuple[str, ...]) -> float:
        return math.prod(self.levers[text] for text in levers)

    def known(self, stage: str, levers: Any) -> Any:
        return self.journal.trials.get((stage, tuple(levers)))

    def _keep(self, trial: Any) -> None:
        self.journal.trials[(trial.stage, trial.levers)] = trial

    def _race(self, launch: Launch) -> Race:
        baselines = [Simulated(launch, name, noise=self.noise) for name in ("as it is", "as it is, again")]
        starter: Any = SimulatedStarter()
        starter.start(baselines)
        race = Race(baselines, starter)
        race._random = self.noise.random
        self.races.append(race)
        return race

    def _contestant(self, levers: tuple[str, ...]) -> Simulated:
        return Simulated(
            Launch(()), "+".join(levers), levers, noise=self.noise, seconds=STEP_SECONDS / self.truth(levers)
        )

    def _patched(self, made: Any, levers: tuple[str, ...]) -> Simulated | None:
        if not self.with_patch:
            return None
        one = self._contestant(levers)
        one.title = "the patched program"
        return one


@contextlib.contextmanager
def only_time() -> Iterator[None]:
    """Numbers agree, every lever fits and can be written: only time is simulated."""
    planned = SimpleNamespace(
        make=lambda case, levers, *rest: Plan(tuple(levers), ()),
        combinations=plan.combinations,
        first_of_each=plan.first_of_each,
        excluded=plan.excluded,
    )
    written = SimpleNamespace(
        make=lambda case, levers: SimpleNamespace(changes=levers, unwritten=(), written=tuple(levers))
    )
    with (
        mock.patch.object(exploration, "plan", planned),
        mock.patch.object(parity, "compare", return_value=Parity("exact", 0.0, "")),
        mock.patch.object(confirmation, "patch", written),
    ):
        yield
