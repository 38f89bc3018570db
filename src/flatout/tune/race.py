"""A race between trials of one program: all are alive, one runs at a time, the others are stopped.

A block is some steps, the same number for all contestants in a round. A program that ends is started again, so that
short programs can be raced as well. What is decided when is the same in every race: `flatout.measure.race`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace

from flatout.measure import race
from flatout.measure.interval import confidence_for, rounds_needed
from flatout.tune.contestant import BLOCK_LIMIT_SECONDS, MOST_STARTS, Contestant
from flatout.tune.starter import BLOCK_SECONDS, Starter

LONGEST_BLOCK_SECONDS = 3.0
BLOCKS_OF_A_PROGRAM = 8
"""A program that ends soon is cut into at least so many blocks: starting it anew costs more than all of them."""
EPOCHS_OF_A_PROGRAM = 4
"""With fewer, blocks of whole epochs would hardly fit in between its warm-up and its end."""
OVERTIME_SECONDS = 45.0
"""What a confirmation may take although its time is up."""
ROUNDS_OF_GROUP = 5
FEWEST_OF_GROUP = 3
LONG_BLOCK_SECONDS = 1.0
"""Rounds of each group of a confirmation, and how long a block is where they are the fewest."""
WARM_STEPS = 5
"""Of a program that ends soon, or whose steps differ from each other."""
SHORT_PROGRAM = 60
"""Steps up to which a program is warm after a fixed number of them: all trials then run the same steps."""
MIXED_STEPS = 6
MIXED_SECONDS = 2.0
"""Of a block, where steps differ from each other: each block has to hold some of every kind."""
MIXED_GIVEN_UP = ((4, 0.8),)
"""As `measure.race.rules.GIVEN_UP`: a single block of such steps tells nothing."""
QUEUED_CALLS = 24
QUEUED_SECONDS = 1.0
"""Of a block, where calls only queue their work. The first steps after a pause find an empty queue, and a GPU is done
with them sooner than with later ones: two steps of 38 ms took 66 ms (an H200)."""
CALLS = ((1.0, 1), (0.4, 2), (0.0, 3))
"""Seconds of a step, and the calls that a block has at least. The first call after a pause is dropped where the others
are not like it; a step of a second is what it is with or without a pause."""


def warm_steps_of(steps_of_program: int | None) -> int:
    """After how many steps a trial is warm; 0: once it runs at its own pace."""
    if steps_of_program is None:
        return WARM_STEPS
    # Half of a very short one, and one more: an injected lever may need a few calls before it changes anything.
    return max(1, min(WARM_STEPS, (steps_of_program + 1) // 2)) if steps_of_program <= SHORT_PROGRAM else 0


def calls_of(step_seconds: float) -> int:
    return next(calls for least, calls in CALLS if step_seconds >= least)


class Race(race.Race[Contestant]):
    def __init__(
        self,
        baselines: Sequence[Contestant],
        starter: Starter,
        *,
        steps_of_program: int | None = None,
        warm_steps: int = 0,
        varies: bool = False,
        show: Callable[[race.View], None] = lambda view: None,
    ) -> None:
        super().__init__(baselines, show=show)
        self.starter = starter
        self.steps_of_program = steps_of_program
        """How many steps the program makes before it ends; None where it has not been seen to end."""
        self.warm_steps = warm_steps
        self.varies = varies
        """Whether what a step does depends on which one it is."""
        if varies:
            self.given_up = MIXED_GIVEN_UP
        self.epoch = 0
        """Steps of an epoch, where blocks are made of whole ones."""
        self.queued = False
        """Whether calls only queue their work, as on a GPU; known after the first round."""

    def start(self, contestants: Sequence[Contestant]) -> None:
        """Start them. Where one of them has run a cell that is kept, all of the race do from here on."""
        starter = self.starter
        starter.start(contestants)
        ran = next((one.ran_kept for one in contestants if one.active and one.ran_kept), "")
        if not starter.keeps or not ran:
            return
        starter.keeps = False
        starter.say(f"all cells run in these trials, those that are kept too ({ran})")
        for one in contestants:
            one.close()
        self.rewind()
        starter.start(contestants)

    def prepare(self, everyone: Sequence[Contestant]) -> None:
        """Those whose program has ended, or will end within the block, are started together: that takes less time than
        one by one, and than waiting for the end of each."""
        for one in everyone:
            if one.child is not None and self.steps_of_program and one.done + one.steps > self.steps_of_program:
                one.ended_after = min(one.ended_after or self.steps_of_program, self.steps_of_program)
                one.close()
        self.starter.start([one for one in everyone if one.child is None and one.starts < MOST_STARTS])

    def adjust(self, contestants: Sequence[Contestant]) -> None:
        """All run the same number of steps in a round, so that they pass the ends of epochs in the same rounds. One
        that has left, as the program makes few steps with it, tells nothing of the others."""
        for one in (*self.baselines, *contestants):
            if one.ended_after is not None and (one.active or not one.levers):
                self.steps_of_program = min(self.steps_of_program or one.ended_after, one.ended_after)
        baselines = [one for one in self.baselines if one.active]
        if not baselines:
            return
        if not self.queued and any(block.queued for one in baselines for block in one.step_blocks()):
            self.queued = True
            self._forget()
        steps = self._block_steps(baselines, contestants)
        self._find_rhythm(baselines, contestants)
        if self.epoch and EPOCHS_OF_A_PROGRAM * self.epoch <= (self.steps_of_program or math.inf):
            # One more, as the first is dropped: what is left has each part of an epoch once, wherever it begins.
            steps = max(round(steps / self.epoch), 1) * self.epoch + 1
        limit = max(BLOCK_LIMIT_SECONDS, 12 * self.block_seconds())
        calls = calls_of(self._step_seconds(baselines))
        for one in (*baselines, *contestants):
            one.steps, one.calls, one.limit_seconds, one.varies = steps, min(calls, steps), limit, self.varies

    def shorten(self, steps_of_program: int) -> None:
        """The program has turned out to end after so many steps: all of its trials warm up in some of them."""
        self.steps_of_program, self.warm_steps = steps_of_program, warm_steps_of(steps_of_program)
        for one in self.baselines:
            one.launch = replace(one.launch, warm_steps=self.warm_steps)
        self.rewind()

    def rewind(self) -> None:
        """Start the baselines anew with the next round, so that they run the same steps as those that begin then."""
        self.begin_group()
        for one in self.baselines:
            if one.active:
                one.close()

    def rounds_past_the_deadline(self, rules: race.Rules, contestants: int) -> int:
        """Rounds that a confirmation may run although its time is up: as many as it needs, unless they take minutes."""
        return rules.fewest_rounds + 1 if self.seconds_for(contestants) < OVERTIME_SECONDS else 0

    def seconds_to_start(self, contestants: int) -> float:
        """Until so many are warm, one after the other."""
        return contestants * (statistics.mean(self.starter.took) if self.starter.took else 10.0)

    def seconds_for(self, contestants: int) -> float:
        """What so many more contestants are likely to cost: their starts, two at a time, and their rounds with both
        baselines, with the starts that all of them need again where the program ends after a few blocks."""
        start = self.seconds_to_start(1) / 2
        rounds = rounds_needed(confidence_for(contestants)) + 2
        return contestants * start + rounds * (contestants + len(self.baselines)) * self._seconds_of_a_block()

    def _seconds_of_a_block(self) -> float:
        """With the starts that a program needs again where it ends after a few blocks."""
        again = max((one.starts - 1) / max(len(one.blocks), 1) for one in self.baselines)
        start = self.seconds_to_start(1) / 2
        return self.block_seconds() + 0.05 + 1.5 * again * start  # not all of these find another one to start with

    def apart_once(self, rounds: int) -> list[float]:
        """By how much the baselines differed, where each group had one process of each: a mean of several differs
        less."""
        return self.apart(rounds) if all(one.starts <= len(self.groups) for one in self.baselines) else []

    def seconds_to_confirm(self, contestants: int, groups: int) -> float:
        """Of groups of rounds in which these and the baselines are started anew."""
        everyone = contestants + len(self.baselines)
        rounds = self.rounds_of_group() * everyone * self._seconds_of_a_block()
        return groups * (self.seconds_to_start(everyone) / 2 + rounds)

    def rounds_of_group(self) -> int:
        """Few are enough: processes differ more than the medians of a few rounds, and each group has its own."""
        return ROUNDS_OF_GROUP if self.block_seconds() < LONG_BLOCK_SECONDS else FEWEST_OF_GROUP

    def _block_steps(self, baselines: Sequence[Contestant], contestants: Sequence[Contestant]) -> int:
        steps = max(one.steps for one in baselines)
        slowest = self._step_seconds(baselines)
        for one in (*baselines, *contestants):
            blocks = one.step_blocks()
            if len(blocks) >= 3 and one.dropped() >= len(blocks[-1].times) // 2:
                steps = max(steps, 2 * one.steps)  # the block is over before its pace is steady
        fewest = calls_of(slowest)
        for applies, calls, seconds in (
            (self.varies, MIXED_STEPS, MIXED_SECONDS),
            (self.queued, QUEUED_CALLS, QUEUED_SECONDS),
        ):
            if applies:
                fewest = max(fewest, calls)
                steps = max(steps, fewest, math.ceil(seconds / slowest) if slowest else 0)
        if slowest:
            steps = min(steps, max(fewest, math.floor(LONGEST_BLOCK_SECONDS / slowest)))
        if self.steps_of_program:
            steps = min(steps, _share_of(self.steps_of_program, self.warm_steps, fewest))
        return steps

    def _step_seconds(self, baselines: Sequence[Contestant]) -> float:
        """Of the slowest baseline; before its first block, as it was when it warmed up."""
        return max((one.unit_seconds() or one.warm_seconds) for one in baselines)

    def _find_rhythm(self, baselines: Sequence[Contestant], contestants: Sequence[Contestant]) -> None:
        """Short epochs with a costly start: blocks that have one and blocks that have none are not comparable.

        The rounds so far are forgotten, so not while some contestant has its verdict by them.
        """
        if self.epoch or any(not one.active and any(one.blocks) for one in contestants):
            return
        epoch = max(one.rhythm() for one in baselines)
        if not epoch or epoch * max((one.unit_seconds() or 0.0) for one in baselines) > LONGEST_BLOCK_SECONDS:
            return
        self.epoch = epoch
        self._forget()

    def _forget(self) -> None:
        """Blocks so far do not compare with those to come."""
        for one in (*self.baselines, *self.contestants):
            one.blocks = [None] * len(one.blocks)

    def block_seconds(self) -> float:
        longest = [sum(block.times) for one in self.baselines for block in one.blocks[-3:] if block]
        return max(longest, default=max([BLOCK_SECONDS, *(one.warm_seconds for one in self.baselines)]))


def _share_of(steps_of_program: int, warm_steps: int, fewest: int) -> int:
    """Steps of a block, so that several fit between the warm-up of the program and its end."""
    left = max(steps_of_program - (warm_steps or WARM_STEPS), 1)
    blocks = max(1, min(BLOCKS_OF_A_PROGRAM, left // max(fewest, 3)))
    return max(1, left // blocks)
