"""Paired, interleaved rounds: every contestant runs some steps in each round, in shuffled order, one at a time.

The ratio of a round is that of the baseline's step to the contestant's in the same round. Two baselines run in every
race, and a contestant has to stand against each of them: what two processes of the same program differ by is noise.
A program that ends is started again, so that short programs can be raced as well.
"""

from __future__ import annotations

import itertools
import math
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from flatout.measure.interval import paired_ratio, rounds_needed
from flatout.measure.processors import STARVED, Mark
from flatout.model.case import Interval
from flatout.process.warden import Warden
from flatout.trial.child_process import ChildProcess, Ended, Overdue
from flatout.trial.nursery import Nurseries
from flatout.tune.contestant import Block, Contestant

WORTH = 1.02
"""A gain below this is not called one, whatever its interval."""
PROMISING = 1.05
BLOCK_SECONDS = 0.3
LONGEST_BLOCK_SECONDS = 3.0
BLOCK_LIMIT_SECONDS = 75.0
MOST_STARTS = 20
"""Of one program that keeps ending: out of a nursery a start costs little, and the deadline is there anyway."""
BLOCKS_OF_A_PROGRAM = 8
"""A program that ends soon is cut into at least so many blocks: starting it anew costs more than all of them."""
EPOCHS_OF_A_PROGRAM = 4
"""With fewer, blocks of whole epochs would hardly fit in between its warm-up and its end."""
MOST_ROUNDS = 20
LONGER_WHERE_STARVED = 3
"""Times as many rounds at most, where something else has the processors in some of them."""
NARROW = 1.3
"""High end over low end of an interval that is narrow enough to be claimed."""
GIVEN_UP = ((4, 0.8), (2, 0.4), (1, 0.1))
"""Rounds, and the share of the baseline's speed that a contestant given up then has reached in none of them. One that
is slow beyond all measure would take the time that the others need to be decided."""
START_SECONDS = 90.0
NOTHING = "nothing"
"""What is over before it began: a lever that has not changed anything."""


@dataclass(frozen=True)
class Verdict:
    speedup: Interval
    cpu: Interval
    rounds: int


class Race:
    """The contestants of one program that are alive together."""

    def __init__(
        self,
        directory: Path,
        warden: Warden,
        baselines: Sequence[Contestant],
        *,
        deadline: float,
        memory_limit: int | None = None,
        nurseries: Nurseries | None = None,
        say: Callable[[str], None] = lambda text: None,
        look: Callable[[Race], None] = lambda race: None,
    ) -> None:
        self.directory = directory
        self.warden = warden
        self.baselines = list(baselines)
        self.contestants: list[Contestant] = []
        self.deadline = deadline
        self.last = deadline
        """Later than the deadline where the time after it is needed only if something wins: when it ends otherwise."""
        self.memory_limit = memory_limit
        self.nurseries = nurseries
        self.say = say
        self.look = look
        self.random = random.Random(0)
        self.round = 0
        self.start_seconds = START_SECONDS
        self.started: list[float] = []
        """Seconds that each start has taken."""
        self.steps_of_program: int | None = None
        """How many steps the program makes before it ends; None where it goes on longer than anyone has looked."""
        self.epoch = 0
        """Steps of an epoch, where blocks are made of whole ones."""
        self.taken: list[float] = []
        """Of each round: the share of the processors that something else had."""
        self._numbers = itertools.count(1)

    # ── starting ─────────────────────────────────────────────────────────────────────────────────────────────

    def start(self, contestants: Sequence[Contestant]) -> None:
        """Start programs, a few at a time, and wait until each is warm. Nothing is measured meanwhile."""
        at_once = max(2, len(os.sched_getaffinity(0)) // 2)
        waiting = [one for one in contestants if one.running]
        starting: list[Contestant] = []
        while waiting or starting:
            while waiting and len(starting) < at_once:
                one = waiting.pop(0)
                self._launch(one)
                starting.append(one)
            self._await_warm(starting.pop(0))

    def _launch(self, one: Contestant) -> None:
        one.starts += 1
        place = self.directory / f"{next(self._numbers):03d}-{_slug(one.title)}"
        place.mkdir(parents=True)
        one.directories.append(place)
        try:
            one.child = ChildProcess(one.launch, place, self.warden, self.nurseries)
        except OSError as error:
            self._drop(one, "failed", f"it could not be started: {error}")

    def _await_warm(self, one: Contestant) -> None:
        if one.child is None:
            return
        try:
            said = one.child.answer(self.start_seconds, self.memory_limit)
        except Ended as ended:
            too_short = one.child.ended_well
            self._drop(one, "failed", f"{ended} before enough steps were seen" if too_short else str(ended))
            return
        except Overdue as overdue:
            self._drop(one, "timeout", f"{overdue}, starting up")
            return
        one.report, one.done = said["levers"], int(said["steps"])
        idle = [name for name, facts in one.report.items() if not facts["changes"]]
        if one.launch.levers and len(idle) == len(one.report) and not one.launch.sources:
            why = [note for facts in one.report.values() for note in facts["notes"]]
            self._drop(one, NOTHING, "; ".join(why) or "it found nothing to change in this program")
            return
        self.started.append(time.monotonic() - one.child.started)
        step = said["seconds"] / max(said["steps"] - 1, 1)
        one.steps = max(one.steps, min(math.ceil(BLOCK_SECONDS / max(step, 1e-5)), 2000))
        one.child.hold()

    def _drop(self, one: Contestant, over: str, note: str) -> None:
        one.over, one.note = over, note
        self._end(one)
        self.say(f"{one.title}: {note}")

    def _end(self, one: Contestant) -> None:
        if one.child is not None:
            one.peak_bytes = max(one.peak_bytes, one.child.peak_bytes)
            one.child.end()
            one.child = None

    # ── rounds ───────────────────────────────────────────────────────────────────────────────────────────────

    def run(
        self, contestants: Sequence[Contestant], comparisons: int, rounds: int = MOST_ROUNDS, claim: bool = False
    ) -> None:
        """Rounds until every contestant is decided, the rounds are used up, or the time is.

        What is to be claimed is also measured until its interval is narrow. Rounds in which something else had the
        processors say little: they count in the intervals, but use up none of the rounds.
        """
        self.contestants += [one for one in contestants if one not in self.contestants]
        self._agree_on_steps(contestants)
        quiet = 0
        for _ in range(LONGER_WHERE_STARVED * rounds):
            running = [one for one in contestants if one.running]
            if quiet == rounds or not running or self._time_is_up(contestants) or not self._one_round(running):
                break
            quiet += self.taken[-1] < STARVED
            self._agree_on_steps(contestants)
            for one in running:
                if one.running:
                    self._decide(one, comparisons, claim)
            self.look(self)
        for one in contestants:
            if one.running:
                verdict = self.verdict(one, comparisons)
                one.over = "noise" if verdict is None else _status(verdict.speedup)

    def _time_is_up(self, contestants: Sequence[Contestant]) -> bool:
        now = time.monotonic()
        if now <= self.deadline or now > self.last:
            return now > self.deadline
        return any(one.over == "won" or (one.running and self._ahead(one)) for one in contestants)

    def _ahead(self, one: Contestant) -> bool:
        ratios = self.ratios(one)
        return bool(ratios) and statistics.median(ratios) > PROMISING

    def _agree_on_steps(self, contestants: Sequence[Contestant]) -> None:
        """All run the same number of steps in a round, so that they pass the ends of epochs in the same rounds."""
        baseline = [one for one in self.baselines if one.running]
        if not baseline:
            return
        steps = max(one.steps for one in baseline)
        slowest = max((one.step_ms() or 0.0) for one in baseline) / 1e3
        for one in (*baseline, *contestants):
            times = [block.times for block in one.blocks if block]
            if len(times) >= 3 and one.dropped() >= len(times[-1]) // 2:
                steps = max(steps, 2 * one.steps)  # the block is over before its pace is steady
        if slowest:
            steps = min(steps, max(3, math.floor(LONGEST_BLOCK_SECONDS / slowest)))
        if self.steps_of_program:
            steps = min(steps, max(3, self.steps_of_program // BLOCKS_OF_A_PROGRAM))
        self._find_rhythm(baseline, contestants)
        if self.epoch and EPOCHS_OF_A_PROGRAM * self.epoch <= (self.steps_of_program or math.inf):
            # One more, as the first is dropped: what is left has each part of an epoch once, wherever it begins.
            steps = max(round(steps / self.epoch), 1) * self.epoch + 1
        for one in (*baseline, *contestants):
            one.steps = steps

    def _find_rhythm(self, baseline: Sequence[Contestant], contestants: Sequence[Contestant]) -> None:
        """Short epochs with a costly start: blocks that have one and blocks that have none are not comparable.

        The rounds so far are forgotten, so not while some contestant has its verdict by them.
        """
        if self.epoch or any(one.over and any(one.blocks) for one in contestants):
            return
        epoch = max(one.rhythm() for one in baseline)
        if not epoch or epoch * max((one.step_ms() or 0.0) for one in baseline) / 1e3 > LONGEST_BLOCK_SECONDS:
            return
        self.epoch = epoch
        for one in (*self.baselines, *self.contestants):
            one.blocks = [None] * len(one.blocks)

    def _one_round(self, running: Sequence[Contestant]) -> bool:
        everyone = [*(one for one in self.baselines if one.running), *running]
        if not any(one in everyone for one in self.baselines):
            return False
        for one in everyone:
            one.blocks += [None] * (self.round - len(one.blocks))
        self.start([one for one in everyone if one.child is None and one.starts < MOST_STARTS])
        for one in self.random.sample(everyone, len(everyone)):
            one.blocks.append(self._block(one))
        self.round += 1
        self.taken.append(statistics.fmean([block.taken for one in everyone if (block := one.blocks[-1])] or [0.0]))
        return any(one.running for one in self.baselines)

    def _block(self, one: Contestant) -> Block | None:
        for _ in range(2):
            if not one.running:
                return None
            if one.child is None:
                if one.starts >= MOST_STARTS:
                    self._drop(one, "noise", "the program ends before enough steps were seen")
                    return None
                self.start([one])
                continue
            limit = max(BLOCK_LIMIT_SECONDS, 12 * self._block_seconds())
            mark = Mark.now()
            try:
                one.child.go(one.steps)
                said = one.child.answer(limit, self.memory_limit)
            except Ended as ended:
                if not one.child.ended_well:
                    self._drop(one, "failed", str(ended))
                    return None
                most = one.child.steps_made or one.done + one.steps
                self.steps_of_program = min(self.steps_of_program or most, most)
                self._end(one)  # it has run to its end: start it again
                continue
            except Overdue as overdue:
                self._drop(one, "timeout", f"{overdue} for {one.steps} steps")
                return None
            taken = mark.taken_since(float(said["cpu"]))
            one.report, one.peak_bytes = said["levers"], max(one.peak_bytes, one.child.peak_bytes)
            one.done += int(said["steps"])
            one.child.hold()
            one.epoch = said["epoch"]["steps"] or one.epoch
            steps, cpu, starts = max(int(said["steps"]), 1), float(said["cpu"]), said["epoch"]["starts"]
            return Block(said["times"], steps, cpu, said["counts"], starts, taken)
        return None

    def _block_seconds(self) -> float:
        longest = [sum(block.times) for one in self.baselines for block in one.blocks[-3:] if block]
        return max(longest, default=BLOCK_SECONDS)

    # ── deciding ─────────────────────────────────────────────────────────────────────────────────────────────

    def seconds_for(self, contestants: int) -> float:
        """What so many more contestants are likely to cost: their starts, two at a time, and their rounds with both
        baselines, with the starts that all of them need again where the program ends after a few blocks."""
        start = statistics.mean(self.started) / 2 if self.started else 5.0
        again = max((one.starts - 1) / max(len(one.blocks), 1) for one in self.baselines)
        rounds = rounds_needed(1 - 0.05 / max(contestants, 1)) + 2
        block = self._block_seconds() + 0.05 + 1.5 * again * start  # not all of these find another one to start with
        return contestants * start + rounds * (contestants + len(self.baselines)) * block

    def verdict(self, one: Contestant, comparisons: int) -> Verdict | None:
        """The interval of the speedup that holds against each baseline, widened for the number of comparisons."""
        confidence = 1 - 0.05 / max(comparisons, 1)
        speedups, cpus, rounds = [], [], 0
        for baseline in self.baselines:
            pairs = [
                (b, o, x, y)
                for b, o, x, y in zip(
                    baseline.step_times(), one.step_times(), baseline.blocks, one.blocks, strict=False
                )
                if b is not None and o is not None and x is not None and y is not None
            ]
            if not pairs:
                continue
            rounds = max(rounds, len(pairs))
            speedups.append(paired_ratio([p[0] for p in pairs], [p[1] for p in pairs], confidence))
            cpus.append(
                paired_ratio([p[2].cpu_per_step for p in pairs], [p[3].cpu_per_step or 1e-9 for p in pairs], confidence)
            )
        if not speedups:
            return None
        return Verdict(_envelope(speedups), _envelope(cpus), rounds)

    def _decide(self, one: Contestant, comparisons: int, claim: bool) -> None:
        verdict = self.verdict(one, comparisons)
        if verdict is None:
            return
        speedup, enough = verdict.speedup, rounds_needed(1 - 0.05 / max(comparisons, 1))
        if verdict.rounds < enough and self._hopeless(one, verdict.rounds):
            one.note = f"slower by far in each round, given up after {verdict.rounds}"
            one.over = "lost"
        elif verdict.rounds > enough:
            won = speedup.low > WORTH and (not claim or speedup.high < NARROW * speedup.low)
            # What is neither won by now nor promising would need many rounds to show a gain of some percent.
            if won or speedup.high < 1 / WORTH or (speedup.low < WORTH and speedup.ratio < PROMISING):
                one.over = _status(speedup)
        if one.over:
            self._end(one)

    def _hopeless(self, one: Contestant, rounds: int) -> bool:
        limit = next((limit for least, limit in GIVEN_UP if rounds >= least), 0.0)
        return all(ratio < limit for ratio in (*self.ratios(one), *self._usual_ratios(one)))

    def _usual_ratios(self, one: Contestant) -> list[float]:
        """As `ratios`, but of the usual step: a single long one tells nothing in few rounds."""
        return [
            b.usual / o.usual
            for baseline in self.baselines
            for b, o in zip(baseline.blocks, one.blocks, strict=False)
            if b is not None and o is not None
        ]

    def ratios(self, one: Contestant) -> list[float]:
        """Of every round, against every baseline."""
        return [
            b / o
            for baseline in self.baselines
            for b, o in zip(baseline.step_times(), one.step_times(), strict=False)
            if b is not None and o is not None
        ]

    def close(self) -> None:
        for one in (*self.baselines, *self.contestants):
            self._end(one)


def _status(speedup: Interval) -> str:
    if speedup.low > WORTH:
        return "won"
    return "lost" if speedup.high < 1 / WORTH else "noise"


def _envelope(intervals: Sequence[Interval]) -> Interval:
    ratio = math.exp(statistics.mean(math.log(one.ratio) for one in intervals))
    return Interval(ratio, min(one.low for one in intervals), max(one.high for one in intervals))


def _slug(text: str) -> str:
    return "".join(ch if ch.isalnum() else "-" for ch in text)[:40].strip("-") or "trial"
