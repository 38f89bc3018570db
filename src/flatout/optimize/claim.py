"""The claim: the best of many contestants look better than they are, so they are measured again in fresh processes.

The finalists race against two baselines. Before that, each finalist answers all held-out samples, not only the first
ones. The winner is handed over after its loader was run and gave the same answers. Then it runs again beside the
baselines, in processes that are started anew several times: the published ratio is from those rounds alone, as the
fastest of several finalists looks faster than it is (`measure.race.processes`).
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from flatout.environment.machine import cores
from flatout.measure.agreement import agreement, relative_error
from flatout.measure.interval import CONFIDENCE, confidence_for
from flatout.measure.race import Exit, Race, Rules, TimeLimit, View, compare
from flatout.model.case import Interval, Latency
from flatout.optimize import artefact
from flatout.optimize.builder import STRICT_SECONDS, Builder, needs_tensorflow
from flatout.optimize.candidates import BASELINE
from flatout.optimize.contestant import Contestant, feeds
from flatout.optimize.layouts import LAYOUTS, Layout, handover
from flatout.optimize.work.tasks import OTHER_BATCH
from flatout.process.worker import WorkFailed
from flatout.subject import Array, Subject, any_length
from flatout.subject.writer import has_row_per_sample

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
ROUNDS_OF_OTHER_BATCHES = 8
SMALLEST_DROP = 0.01
FEW_SAMPLES = 5
"""The agreement on a few samples may be this many times as far off as on all: they vary less."""
ALIKE = 1e-5
"""Largest relative difference between the answers of an artefact and of its own loader."""


@dataclass
class Claim:
    race: Race[Contestant]
    winner: Contestant | None
    speedup: Interval | None = None
    artefact: Path | None = None
    """The directory that was handed over."""
    other_batches: list[tuple[Contestant, Contestant]] = field(default_factory=list)
    """At each other batch size: the winner with the setting that is best there, and the baseline."""
    served: str = ""
    """How the server of --layout is started with the artefact."""
    ties: list[Contestant] = field(default_factory=list)
    """Finalists whose speed does not differ measurably from the winner's."""
    notes: list[str] = field(default_factory=list)

    def latencies(self) -> tuple[Latency, ...]:
        latencies = []
        if self.winner is not None and (found := self.winner.latency()) is not None:
            latencies.append(replace(found, speedup=self.speedup, setting=dict(self.winner.setting)))
        for one, base in self.other_batches:
            if (found := one.latency()) is not None:
                once = compare(base, one)
                speedup = self.race.fitted().widened(once, CONFIDENCE) if once is not None else None
                latencies.append(replace(found, speedup=speedup, setting=dict(one.setting)))
        return tuple(latencies)

    def baseline_latencies(self) -> tuple[Latency, ...]:
        ran = [self.race.baselines[0], *(base for _, base in self.other_batches)]
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


def other_batch_seconds(opening: float) -> float:
    """What it takes, about, to measure winner (in two settings) and baseline at another batch size."""
    return 3 * (opening + ROUNDS_OF_OTHER_BATCHES * ROUND_SECONDS)


def make_claim(
    heats: Sequence[Race[Contestant]],
    builder: Builder,
    request: OptimizeRequest,
    target: Path,
    deadline: float,
    progress: Progress,
) -> Claim:
    """`target`: where the artefact goes once its manifest is written; until then it is in `artefact.unfinished`."""
    baselines = [_fresh(heats[0].baselines[0]) for _ in range(2)]
    few = time.monotonic() + claim_seconds(builder.open_seconds) > deadline
    finalists, answers = _admitted(ranked(heats, request.objective), builder, request.objective, deadline, few)
    race = ClaimRace(baselines, builder, progress.show)
    enough = deadline - 3 * GROUPS * (builder.open_seconds + ROUNDS_OF_GROUP * ROUND_SECONDS)
    race.run(finalists, Rules("all-rounds", ROUNDS, len(finalists)), TimeLimit(enough=enough))
    result = Claim(race, None)
    for one in _best_first([one for one in finalists if not one.broken], request.objective):
        problem = _hand_over(one, answers[id(one)], builder, artefact.unfinished(target), request.objective != "size")
        if not problem:
            result.winner, result.artefact = one, target
            break
        one.candidate.drop("failed", problem)
        progress.say(f"{one.name}: {problem}")
    if request.layout is not None and result.winner is not None:
        _write_layout(result, LAYOUTS[request.layout], builder, target)
    if result.winner is not None and result.winner.candidate.route.name != BASELINE:
        confirm(race, finalists, result.winner, deadline)
    for one in (*baselines, *finalists):
        one.close()
    if result.winner is not None:
        result.speedup = race.verdict(result.winner).speedup
        result.ties = [one for one in finalists if one is not result.winner and _tied(result.winner, one)]
        _measure_other_batches(result, builder, deadline, progress)
    return result


def confirm(
    race: Race[Contestant], finalists: Sequence[Contestant], winner: Contestant, deadline: float = math.inf
) -> None:
    """Give all finalists a verdict that holds for other processes: the winner by rounds that it was not chosen by."""
    opening = sum(one.load_ms for one in (*race.baselines, winner)) / 1e3
    winner.counts_from = race.round if len(finalists) > 1 else 0
    for done in range(GROUPS - (opening > SLOW_TO_OPEN_SECONDS)):
        if done >= FEWEST_GROUPS - (len(finalists) == 1) and time.monotonic() > deadline:
            break
        race.confirm([winner], 1, ROUNDS_OF_GROUP)
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
    near = [one for one in rest if one.candidate.route.name != BASELINE and not _is_behind(one) and _tied(best, one)]
    spare = [one for one in rest if one.candidate is not best.candidate and one.candidate.route.name != BASELINE][:1]
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
        if _try_to_open(again, builder):
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
        return []
    if one.candidate.over:
        one.leave(Exit("failed", one.candidate.note))
    return given


def _hand_over(
    one: Contestant, answers: list[Array], builder: Builder, target: Path, with_any_length: bool = True
) -> str:
    """Write the artefact and run its loader there, in a fresh process. Returns the problem; empty if there is none."""
    subject = builder.subject
    try:
        artefact.assemble(one, subject, target, with_any_length)
        count = artefact.write_check(subject, answers, target)
        if one.candidate.route.name != BASELINE:
            _try_odd_samples(one, builder, target)
        output = builder.directory / "loaded.npz"
        preloaded = needs_tensorflow(subject, one.candidate.route)
        worker = builder.processes.worker(builder.directory / "logs" / "loader.txt", preloaded)
        names = feeds(subject)[1:]
        other = builder.directory / "other.npz"
        rows = subject.batching == "dynamic" and has_row_per_sample(subject) and count >= OTHER_BATCH
        try:
            answer = worker.ask(
                "run_loader",
                120.0,
                builder.memory_limit,
                path=str(target / artefact.LOADER),
                directory=str(target),
                batch=one.batch,
                feeds=[str(target / artefact.CHECK), *names],
                output=str(output),
                other=str(other) if rows else "",
            )
        finally:
            worker.end()
        with np.load(output, allow_pickle=False) as stored:
            loaded = [stored[f"out{i}"] for i in range(len(stored.files))]
        output.unlink()
        if rows:
            one.candidate.fixed_batch = str(answer["problem"]) or _differs(other, subject, builder)
        error = relative_error([array[:count] for array in answers], loaded)
        if error > ALIKE:
            return f"loader: its answers differ from the artefact's by {error:.1e}"
        return _other_lengths(one, builder, target) if (subject.directory / any_length.FOLDER).exists() else ""
    except (WorkFailed, OSError, NotImplementedError) as error:
        return f"loader: {error}"


def _write_layout(result: Claim, layout: Layout, builder: Builder, target: Path) -> None:
    assert result.winner is not None
    candidate, subject = result.winner.candidate, builder.subject
    preloaded = needs_tensorflow(subject, candidate.route)
    worker = builder.processes.worker(builder.directory / "logs" / "layout.txt", preloaded)
    made = artefact.unfinished(target)
    try:
        result.served = handover.write(layout, candidate.route, result.winner.setting, subject, made, target, worker)
    except handover.NotWritten as error:
        shutil.rmtree(made / layout.name, ignore_errors=True)
        result.notes.append(f"The artefact was not written for {layout.server}: {error}.")
    finally:
        worker.end()


def _try_odd_samples(one: Contestant, builder: Builder, target: Path) -> None:
    """Where NaN and infinity become something else, the loader refuses them; of integers out of range it is told."""
    candidate = one.candidate
    for integers, kinds in ((False, ("float", "bfloat")), (True, ("int",))):
        if not any(tensor.dtype.startswith(kinds) for tensor in builder.subject.inputs):
            continue
        worker = builder.processes.worker(builder.directory / "logs" / "odd.txt")
        try:
            answer = worker.ask(
                "run_odd",
                120.0,
                builder.memory_limit,
                path=str(target / artefact.LOADER),
                directory=str(target),
                subject=str(builder.subject.directory),
                batch=one.batch,
                integers=integers,
            )
            found = str(answer["differs"])
        except WorkFailed:
            found = "not answered: the process ends"
        finally:
            worker.end()
        if integers:
            candidate.integers = found
        elif found:
            candidate.finite_only = True
            artefact.write_loader(one, builder.subject, target)


def _other_lengths(one: Contestant, builder: Builder, target: Path) -> str:
    """What is wrong with its answers to samples of other lengths: it has to answer as the original, or to refuse."""
    worker = builder.processes.worker(builder.directory / "logs" / "lengths.txt")
    try:
        answer = worker.ask(
            "run_other_lengths",
            120.0,
            builder.memory_limit,
            path=str(target / artefact.LOADER),
            directory=str(target),
            subject=str(builder.subject.directory),
            batch=one.batch,
        )
    finally:
        worker.end()
    one.candidate.any_length = bool(answer["answered"])
    return f"loader: {answer['problem']}" if answer["problem"] else ""


def _differs(path: Path, subject: Subject, builder: Builder) -> str:
    """How the answers to another number of samples differ from the original's; empty if they agree."""
    with np.load(path, allow_pickle=False) as stored:
        given = [stored[f"out{i}"] for i in range(len(stored.files))]
    path.unlink()
    agreed = min(agreement([array[:OTHER_BATCH] for array in subject.answers("held_out")], given))
    allowed = max(builder.accuracy.budget.max_drop, SMALLEST_DROP) * FEW_SAMPLES
    return "" if agreed >= 1 - allowed else f"its answers to {OTHER_BATCH} samples at once agree to {agreed:.3f}"


def _is_behind(one: Contestant) -> bool:
    return one.exit is not None and one.exit.why in ("behind", "given-up")


def _tied(winner: Contestant, one: Contestant) -> bool:
    ratio = compare(winner, one)
    return ratio is not None and ratio.high >= 1


def _measure_other_batches(result: Claim, builder: Builder, deadline: float, progress: Progress) -> None:
    winner = result.winner
    assert winner is not None
    for batch in builder.subject.batches:
        if batch == winner.batch:
            continue
        if time.monotonic() > deadline:
            result.notes.append(f"There was no time left to measure batch {batch}: give more with --budget.")
            continue
        base = Contestant(result.race.baselines[0].candidate, {}, batch)
        ways = [Contestant(winner.candidate, setting, batch) for setting in winner.candidate.settings]
        opened = [one for one in (base, *ways) if _try_to_open(one, builder)]
        if base in opened and len(opened) > 1:
            rules = Rules("all-rounds", ROUNDS_OF_OTHER_BATCHES)
            race = Race([base], show=progress.show)
            race.run(opened[1:], rules, TimeLimit(enough=deadline))
            result.other_batches.append((_best_first(opened[1:], "latency")[0], base))
        else:
            why = next(one.note for one in (base, *ways) if one.broken)
            result.notes.append(f"Batch {batch} could not be measured: {why}")
        for one in opened:
            one.close()
