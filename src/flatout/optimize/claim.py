"""The claim: the best of many contestants look better than they are, so they are measured again in fresh processes.

The finalists race against two baselines. Before that, each finalist answers all held-out samples, not only the first
ones. The best of them is written and tried as its user would (`delivery`), and runs again beside the baselines, in
processes that are started anew several times: the published ratio is from those rounds alone, as the fastest of several
finalists looks faster than it is (`measure.race.processes`). One that breaks in any of this is dropped, and the next
best goes the same way; the last one is the model itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from flatout.environment.machine import cores
from flatout.measure.interval import confidence_for
from flatout.measure.race import Exit, Race, Rules, TimeLimit, Verdict, View, compare
from flatout.model.case import Interval, Latency
from flatout.optimize import artefact, other_batches
from flatout.optimize.builder import STRICT_SECONDS, Builder
from flatout.optimize.contestant import Contestant
from flatout.optimize.delivery import deliver, deliver_layout
from flatout.optimize.layouts import LAYOUTS
from flatout.optimize.other_batches import AtBatch
from flatout.process.worker import WorkFailed
from flatout.subject import Array

if TYPE_CHECKING:
    from flatout.optimize.request import OptimizeRequest
    from flatout.report.progress import Progress

FINALISTS = 3
ROUNDS = 9
GROUPS = 3
ROUNDS_OF_GROUP = 5
"""Groups of rounds that the claim is made of, each in fresh processes."""
FEWEST_GROUPS = 2
"""Where time is short; of a single finalist, the rounds that it was chosen by are one of them."""
ROUND_SECONDS = 0.3
"""A block of one contestant, about."""
SLOW_TO_OPEN_SECONDS = 10.0
"""Opening baselines and winner for so long: then there is one group less."""
CHECK_SHARE = 0.15
"""Share of the time that is left which the strict check of one finalist may take."""
LEAST_CHECK_SECONDS = 8.0


@dataclass
class Claim:
    race: Race[Contestant]
    winner: Contestant | None
    speedup: Interval | None = None
    artefact: Path | None = None
    """The directory that was handed over."""
    size_bytes: int = 0
    """Of all in it that serves: files of the model, its stages, the model itself where that goes with it."""
    other_batches: list[AtBatch] = field(default_factory=list)
    served: str = ""
    """How the server of --layout is started with the artefact."""
    unserved: str = ""
    """Why the artefact was not written for that server, as a sentence: of the model itself alone."""
    notes: list[str] = field(default_factory=list)

    lost: str = ""
    """Why there is no artefact although something had passed."""

    def withdraw(self, why: str) -> None:
        """The artefact is not there: nothing is handed over."""
        self.winner, self.artefact, self.served, self.lost = None, None, "", why

    def latencies(self) -> tuple[Latency, ...]:
        latencies = []
        if self.winner is not None and (found := self.winner.latency()) is not None:
            latencies.append(replace(found, speedup=self.speedup, setting=dict(self.winner.setting)))
        found_there = (one.latency(self.race.fitted()) for one in self.other_batches)
        return (*latencies, *(one for one in found_there if one is not None))

    def baseline_latencies(self) -> tuple[Latency, ...]:
        ran = [self.race.baselines[0], *(one.base for one in self.other_batches)]
        return tuple(found for one in ran if (found := one.latency()) is not None)


class ClaimRace(Race[Contestant]):
    """Contestants that were closed are opened again, in fresh processes."""

    def __init__(self, baselines: Sequence[Contestant], builder: Builder, show: Callable[[View], None]) -> None:
        super().__init__(baselines, show=show)
        self.builder = builder

    def prepare(self, everyone: Sequence[Contestant]) -> None:
        closed = [one for one in everyone if one.active and one.worker is None]
        with ThreadPoolExecutor(max_workers=max(1, min(cores(), 4))) as pool:
            list(pool.map(lambda one: _try_to_open(one, self.builder), closed))


def claim_seconds(opening: float, finalists: int = FINALISTS, groups: int = GROUPS) -> float:
    """What the claim takes, about, where a process takes so long to open. At least what the shortest one takes."""
    opened = 2 + finalists + 1 + 3 * groups
    blocks = ROUNDS * (2 + finalists) + 3 * ROUNDS_OF_GROUP * groups
    return opened * opening + blocks * ROUND_SECONDS + finalists * LEAST_CHECK_SECONDS


def make_claim(
    heats: Sequence[Race[Contestant]],
    builder: Builder,
    request: OptimizeRequest,
    target: Path,
    deadline: float,
    progress: Progress,
) -> Claim:
    """`target`: where the artefact goes once its manifest is written; until then it is in `artefact.unfinished`."""
    finals = Finals(heats[0].baselines[0], builder, request, target, deadline, progress)
    finals.decide(ranked(heats, request.objective))
    return finals.claim


class Finals:
    """Finalists race, and the best of them is written, tried and started anew, until one of them stands."""

    def __init__(
        self,
        baseline: Contestant,
        builder: Builder,
        request: OptimizeRequest,
        target: Path,
        deadline: float,
        progress: Progress,
    ) -> None:
        self.builder, self.request, self.target = builder, request, target
        self.deadline, self.progress = deadline, progress
        self.race = ClaimRace([_fresh(baseline) for _ in range(2)], builder, progress.show)
        self.claim = Claim(self.race, None)

    def decide(self, ranking: Sequence[Contestant]) -> None:
        """`ranking`: all that may be handed over, the best first."""
        left = list(ranking)
        while left and self.claim.winner is None:
            finalists, answers = _admitted(left, self.builder, self.request.objective, self.deadline, self._is_late())
            self._run(finalists)
            for one in _best_first(finalists, self.request.objective):
                if self._stands(one, finalists, answers[id(one)]):
                    self.claim.winner, self.claim.artefact = one, self.target
                    break
            seen = {id(one.candidate) for one in finalists}
            left = [one for one in left if finalists and id(one.candidate) not in seen and not one.candidate.over]
        for one in (*self.race.baselines, *self.race.contestants):
            one.close()
        if (winner := self.claim.winner) is not None:
            self.claim.speedup = self.race.verdict(winner).speedup
            made = artefact.unfinished(self.target)
            self.claim.size_bytes = artefact.size(made)
            self.claim.other_batches, notes = other_batches.measure(
                winner, self.race.baselines[0], self.builder, made, self.deadline, self.progress.show
            )
            self.claim.notes += notes

    def _is_late(self) -> bool:
        return time.monotonic() + claim_seconds(self.builder.open_seconds) > self.deadline

    def _run(self, finalists: Sequence[Contestant]) -> None:
        """Which one is the best; what breaks is dropped."""
        if self.race.round:
            self.race.renew(())
        enough = self.deadline - 3 * GROUPS * (self.builder.open_seconds + ROUNDS_OF_GROUP * ROUND_SECONDS)
        self.race.run(finalists, Rules("all-rounds", ROUNDS, len(finalists)), TimeLimit(enough=enough))
        for one in finalists:
            if one.broken:
                self._drop(one, f"run: {one.note}")

    def _stands(self, one: Contestant, finalists: Sequence[Contestant], answers: Sequence[Array]) -> bool:
        """Whether it may be handed over, as far as it was tried: written, loaded, started anew."""
        made, with_any_length = artefact.unfinished(self.target), self.request.objective != "size"
        if problem := deliver(one, answers, self.builder, made, with_any_length=with_any_length):
            return self._drop(one, problem)
        if problem := self._layout_problem(one):
            return self._drop(one, problem)
        if one.candidate.is_model_itself:
            one.verdict = Verdict("noise", note="the baseline")
            return True
        confirm(self.race, finalists, one, self.deadline)
        if one.broken:
            return self._drop(one, f"run: started anew, {one.note}")
        if self.request.objective in ("size", "memory") or self.race.verdict(one).status != "lost":
            return True
        self.progress.say(f"{one.name}: slower than the model itself in processes that were started anew")
        return False

    def _layout_problem(self, one: Contestant) -> str:
        """Of what was written for the server of --layout. The model itself is handed over without."""
        if self.request.layout is None:
            return ""
        layout = LAYOUTS[self.request.layout]
        self.claim.served, why = deliver_layout(layout, one, self.builder, self.target)
        if not why or not one.candidate.is_model_itself:
            return f"{layout.server}: {why}" if why else ""
        self.claim.unserved = f"The artefact was not written for {layout.server}: {why}."
        self.claim.notes.append(self.claim.unserved)
        return ""

    def _drop(self, one: Contestant, problem: str) -> bool:
        one.close()
        one.candidate.drop("failed", problem)
        self.progress.say(f"{one.name}: {problem}")
        return False


def confirm(
    race: Race[Contestant], finalists: Sequence[Contestant], winner: Contestant, deadline: float = math.inf
) -> None:
    """Give all finalists a verdict that holds for other processes: the winner by rounds that it was not chosen by, and
    in which its inputs were looked at as its loader does."""
    opening = sum(one.load_ms for one in (*race.baselines, winner)) / 1e3
    anew = len(finalists) > 1 or winner.candidate.finite_only
    winner.counts_from = race.round if anew else 0
    for done in range(GROUPS - (opening > SLOW_TO_OPEN_SECONDS)):
        if done >= FEWEST_GROUPS - (not anew) and time.monotonic() > deadline:
            break
        race.confirm([winner], 1, ROUNDS_OF_GROUP)
        if winner.broken:
            break
    for one in finalists:
        one.verdict = race.claim(one, confidence_for(1 if one is winner else len(finalists)))


def ranked(heats: Sequence[Race[Contestant]], objective: str) -> list[Contestant]:
    """All that may be handed over, the best first."""
    baseline = heats[0].baselines[0]
    fit = [
        one
        for race in heats
        for one in race.contestants
        if one.candidate.route.deployable
        and (one.candidate.ours or not one.candidate.given)
        and not one.candidate.over
        and not one.broken
        and one.call_ms() is not None
    ]
    return _best_first([*fit, baseline], objective)


def _best_first(contestants: Sequence[Contestant], objective: str) -> list[Contestant]:
    def key(one: Contestant) -> tuple[float, float]:
        call = one.call_ms() or float("inf")
        if objective == "size":
            return one.candidate.size_bytes, call
        if objective == "memory":
            return one.memory_bytes, call
        return call, one.candidate.size_bytes

    return sorted((one for one in contestants if not one.candidate.over), key=key)


def _finalists(ranking: Sequence[Contestant], objective: str) -> list[Contestant]:
    """The best, and those that may be as fast by what the screening shows."""
    best, *rest = ranking
    if objective in ("size", "memory"):
        return [best]
    others = [one for one in rest if not one.candidate.is_model_itself]
    near = [one for one in others if not _is_behind(one) and _tied(best, one)]
    spare = [one for one in others if one.candidate is not best.candidate][:1]
    return [best, *near[: FINALISTS - 1]] if near else [best, *spare]


def _admitted(
    ranking: Sequence[Contestant], builder: Builder, objective: str, deadline: float, few: bool = False
) -> tuple[list[Contestant], dict[int, list[Array]]]:
    """Finalists that pass the strict check, and their answers; where none of them does, those that come after.

    `few`: there is time for one alone.
    """
    first = _finalists(ranking, objective)[: 1 if few else None]
    admitted: list[Contestant] = []
    answers: dict[int, list[Array]] = {}
    for one in (*first, *(one for one in ranking if one not in first)):
        if admitted and one not in first:
            break
        if one.candidate.over or (admitted and time.monotonic() > deadline):
            continue
        again = _fresh(one)
        if not _try_to_open(again, builder):
            one.candidate.drop("failed", f"run: {again.note}")
        else:
            left = CHECK_SHARE * (deadline - time.monotonic())
            answers[id(again)] = _checked(again, builder, min(max(left, LEAST_CHECK_SECONDS), STRICT_SECONDS))
        if again.active:
            admitted.append(again)
    return admitted, answers


def _try_to_open(one: Contestant, builder: Builder) -> bool:
    try:
        builder.open(one)
    except WorkFailed as error:
        one.fail(error)
    return one.active


def _fresh(one: Contestant) -> Contestant:
    return Contestant(one.candidate, one.setting, one.batch)


def _checked(one: Contestant, builder: Builder, seconds: float) -> list[Array]:
    """Its answers to all held-out samples, as far as the time allows, checked."""
    try:
        given = builder.check(one, strictly=True, seconds=seconds)
    except WorkFailed as error:
        one.fail(error)
        one.candidate.drop("timeout" if error.how == "timeout" else "failed", f"run: {error}")
        return []
    if one.candidate.over:
        one.leave(Exit("failed", one.candidate.note))
    return given


def _is_behind(one: Contestant) -> bool:
    return one.exit is not None and one.exit.why in ("behind", "given-up")


def _tied(winner: Contestant, one: Contestant) -> bool:
    ratio = compare(winner, one)
    return ratio is not None and ratio.high >= 1
