"""What the stages of a tune share: the request, the program as it was observed, its trials, races and time."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from flatout.cures import find
from flatout.environment import cgroup
from flatout.model.case import Case, Note
from flatout.model.errors import FlatoutError
from flatout.model.evidence.outcomes import RacedOn
from flatout.model.levers import parse
from flatout.process.memory import resident_bytes
from flatout.process.watchdog import Watchdog
from flatout.report.progress import Progress
from flatout.trial import launcher, patch
from flatout.trial.child_process import Launch
from flatout.trial.fork_servers import ForkServers
from flatout.tune.clock import DEFAULT_SECONDS, Clock
from flatout.tune.conclusions import FEWEST_STEPS, keeps_the_numbers
from flatout.tune.contestant import Contestant
from flatout.tune.elsewhere import Spread
from flatout.tune.journal import Journal
from flatout.tune.race import SHORT_PROGRAM, Race, warm_steps_of
from flatout.tune.request import TuneRequest
from flatout.tune.scout import ended_by_itself
from flatout.tune.starter import START_SECONDS, Starter
from flatout.tune.trials import Trials
from flatout.tune.variants import patched, with_levers

RETRACES = 0.3
"""Share of a step that tracing takes where not every step does it."""
VARYING = 3.0
"""The slow steps over the quick ones (p90 over p10) from which trials are kept at the same steps: what a step does
depends on which one it is."""

FEW_STEPS = 10
"""Of a program: levers are then written into its source, as an injected one may need some of them to take hold."""


@dataclass
class Context:
    request: TuneRequest
    directory: Path
    progress: Progress
    launch: Launch
    clock: Clock
    journal: Journal
    trials: Trials
    watchdog: Watchdog
    fork_servers: ForkServers
    case: Case = field(default_factory=lambda: Case(kind="tune"))
    races: list[Race] = field(default_factory=list)
    spread: Spread | None = None
    """Other machines that race levers."""
    raced_on: list[RacedOn] = field(default_factory=list)
    """What these are, with the levers that each has raced."""
    taken: list[Sequence[float]] = field(default_factory=list)
    """Of each race there: the share of the processors that others had in each round."""
    beside: int = 1
    """Races of one tune that this machine runs at the same time: they share its memory."""
    whole: bool | None = None
    """Whether the program was seen to end, where another machine has observed it."""
    notes: list[Note] = field(default_factory=list)
    ended_after: int | None = None
    """Steps after which the program was seen to end before a trial of it was warm."""
    problem: str = ""
    """Why nothing could be tried, where that is so."""
    stopped: str = ""
    """Why the tune did not come to its end, where it did not."""

    @classmethod
    def of(
        cls,
        request: TuneRequest,
        directory: Path,
        progress: Progress,
        launch: Launch | None = None,
        clock: Clock | None = None,
    ) -> Context:
        """`launch`, `clock`: those of a tune that another machine has begun."""
        compiled = directory / "compiled"
        launch = replace(launch or _launch_of(request), compiled=str(compiled))
        watchdog, journal, clock = Watchdog(), Journal(directory), clock or Clock(request.budget or DEFAULT_SECONDS)
        journal.hold()
        return cls(
            request,
            directory,
            progress,
            launch,
            clock,
            journal,
            Trials(journal, progress, directory, clock),
            watchdog,
            ForkServers(launch.command, watchdog, directory, compiled, request.leave),
        )

    def close(self) -> None:
        for race in self.races:
            race.close()
        self.fork_servers.close()
        self.watchdog.close()
        self.journal.let_go()

    # ── the program ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def steps_of_program(self) -> int | None:
        """Steps after which the program ends; None where it was not seen to end."""
        if self.ended_after is not None:
            return self.ended_after
        return self.case.steps.count if self.case.steps is not None and self.seen_whole else None

    @property
    def seconds_of_program(self) -> float | None:
        """From its start to its end, as it was observed; None where it was not seen to end."""
        return self.case.program.seconds or None if self.seen_whole else None

    @property
    def seen_whole(self) -> bool:
        """Whether the program came to its end when it was observed."""
        return ended_by_itself(self.directory / "scout-1") if self.whole is None else self.whole

    @property
    def varies(self) -> bool:
        """Whether what a step does depends on which one it is: episodes that get longer, batches of any length, shapes
        that were not traced before."""
        steps = self.case.steps
        if steps is None or steps.ms.p10 <= 0:
            return False
        if any(one.cause == "retracing" and (one.cost_share or 0.0) > RETRACES for one in self.case.findings):
            return True
        return steps.ms.p90 > VARYING * steps.ms.p10

    @property
    def warm_steps(self) -> int:
        """After how many steps its trials are warm; 0: once they run at their own pace."""
        count = self.steps_of_program
        return warm_steps_of(count) if count is not None or self.varies else 0

    # ── races ────────────────────────────────────────────────────────────────────────────────────────────────

    def race(self, launch: Launch) -> Race:
        """A race with two baselines, which are started."""
        count = self.steps_of_program
        launch = replace(launch, warm_steps=self.warm_steps)
        baselines = [Contestant(launch, "as it is"), Contestant(launch, "as it is, again")]
        longest = max(START_SECONDS, 30 + 1.5 * self.case.program.seconds)
        starter = Starter(
            self.new_directory("race"),
            self.watchdog,
            self.fork_servers,
            self._memory_limit(),
            self.progress.say,
            start_seconds=longest,
        )
        race = Race(
            baselines,
            starter,
            steps_of_program=count,
            warm_steps=launch.warm_steps,
            varies=self.varies,
            show=self.progress.show,
        )
        self.races.append(race)
        self.progress.phase("starting the baselines")
        race.start(baselines)
        if not any(one.active for one in baselines):
            if self.learn_of(baselines):
                return self.race(launch)
            if launch.kept:
                self.progress.say("all cells run in the trials from here on, those that are kept too")
                self.launch = replace(self.launch, kept="")
                return self.race(replace(launch, kept=""))
            self.problem = f"The program could not be held for trials: {baselines[0].note}."
        elif starter.took:
            self._give_time(statistics.mean(starter.took))
            self.clock.reserve(statistics.mean(starter.took), race.block_seconds(), self.seconds_of_program)
        return race

    def _give_time(self, start: float) -> None:
        """More than the default, where none was asked for and each trial takes long to start: all are started several
        times, and on a GPU or with large data that is most of a tune."""
        if self.request.budget is not None or not self.clock.extend(start):
            return
        self.progress.budget = self.clock.budget
        self.progress.say(
            f"a trial takes {start:.0f} s to start here: about {self.clock.budget / 60:.0f} minutes in all (--budget)"
        )

    def learn_of(self, contestants: Sequence[Contestant], made: int = 0) -> bool:
        """Whether the program has turned out to be shorter than was known: it ended before one of them was warm.
        `made`: steps that it makes as it is, at least; with a lever it may make fewer."""
        before_warm = [one.ended_after for one in contestants if one.ended_after and not any(one.blocks)]
        ended = [steps for steps in before_warm if steps >= made]
        if not ended or min(ended) < FEWEST_STEPS or min(ended) >= (self.ended_after or SHORT_PROGRAM):
            return False
        self.ended_after = min(ended)
        return True

    def contestant(self, levers: tuple[str, ...]) -> Contestant:
        edited = self._written(levers) if 0 < (self.steps_of_program or 0) <= FEW_STEPS else ()
        one = with_levers(self.launch, self.case, levers, self.directory / "edited", edited=edited)
        one.launch = replace(one.launch, warm_steps=self.warm_steps)
        return one

    def _written(self, levers: tuple[str, ...]) -> tuple[str, ...]:
        try:
            return patch.make(self.case, levers).written
        except FlatoutError:
            return ()

    def patched(self, made: patch.Patch, levers: tuple[str, ...]) -> Contestant | None:
        """The program as the patch leaves it; None where that cannot be started."""
        one = patched(self.launch, made, levers, self.new_directory("patched"))
        if one is not None:
            one.launch = replace(one.launch, warm_steps=self.warm_steps)
        return one

    def alive_at_once(self, race: Race) -> int:
        """How many trials the free memory holds side by side."""
        child, free = race.baselines[0].child, self._free_memory()
        each = max(resident_bytes(child.group) if child else 0, 1 << 29)
        return max(1, min(12, int(0.6 * free / each))) if free else 4

    def _memory_limit(self) -> int | None:
        """A trial may take as much as the program itself and half of what is free."""
        free = self._free_memory()
        memory = self.case.memory
        return (memory.process_peak_bytes if memory else 0) + free // 2 if free else None

    def _free_memory(self) -> int | None:
        free = cgroup.memory_left()
        return free // self.beside if free else None

    # ── levers ───────────────────────────────────────────────────────────────────────────────────────────────

    def combinable(self, text: str) -> bool:
        """Another precision or another training is combined only where the user asks for it."""
        name = parse(text)[0]
        equivalence = find(name).spec.equivalence
        named = name in {parse(one)[0] for one in self.request.levers}
        return keeps_the_numbers(equivalence) or named or equivalence in self.request.allow

    def new_directory(self, name: str) -> Path:
        """One that nothing has been written to yet: a tune that was interrupted may have left some."""
        numbers = itertools.count(1)
        return next(path for n in numbers if not (path := self.directory / f"{name}-{n}").exists())

    def time_is_up(self) -> bool:
        return time.monotonic() > self.clock.exploring_until


def _launch_of(request: TuneRequest) -> Launch:
    command = launcher.command_for(request.program, request.arguments, request.module)
    return Launch(tuple(command), module=request.program if request.module else None, leave=request.leave)
