"""Paired, interleaved rounds: every contestant is called for a moment in each round, in shuffled order, one at a time.

The ratio of a round is that of the baseline's call to the contestant's in the same round; `measure.interval` makes the
interval of it. Who is behind the leader, by an interval from the same rounds, leaves; who is far behind leaves early.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from flatout.measure.interval import paired_ratio
from flatout.model.case import Interval
from flatout.optimize.contestant import Block, Contestant
from flatout.optimize.energy import Meter
from flatout.optimize.work.process import WorkFailed

BLOCK_SECONDS = 0.15
LONG_CALL_MS = 250.0
"""A call this long is made once in a block: a second one tells little and costs much."""
FEWEST_ROUNDS = 6
"""The fewest that give an interval at 95 %."""
FAR_BEHIND = 3.0
EARLY_ROUNDS = 3
HOPELESS = 10.0
"""So far behind, one round of long calls is enough."""


class Race:
    def __init__(
        self,
        baselines: Sequence[Contestant],
        contestants: Sequence[Contestant],
        deadline: float,
        look: Callable[[Race], None] = lambda race: None,
    ) -> None:
        self.baselines = list(baselines)
        self.contestants = list(contestants)
        self.deadline = deadline
        self.look = look
        self.round = 0
        self._random = random.Random(0)
        self._meter = Meter()

    def run(self, rounds: int, eliminate: bool = True) -> None:
        for _ in range(rounds):
            running = [one for one in self.contestants if not one.over]
            enough = EARLY_ROUNDS if eliminate else FEWEST_ROUNDS  # what is claimed has an interval
            late = time.monotonic() > self.deadline and self.round >= enough
            if late or (self.contestants and not running) or all(one.over for one in self.baselines):
                return
            self._one_round([*(one for one in self.baselines if not one.over), *running])
            if eliminate:
                self._eliminate(running)
            self.look(self)

    def _one_round(self, everyone: Sequence[Contestant]) -> None:
        for one in self._random.sample(everyone, len(everyone)):
            one.blocks += [None] * (self.round - len(one.blocks))
            one.blocks.append(self._block(one))
        self.round += 1

    def _block(self, one: Contestant) -> Block | None:
        call = one.call_ms() or one.warm_ms
        before = self._meter.read()
        try:
            said = one.run(BLOCK_SECONDS, at_least=1 if call > LONG_CALL_MS else 3)
        except WorkFailed as error:
            one.fail(error)
            return None
        return Block(said["times"], said["cpu_ms"], self._meter.joules(before, self._meter.read()))

    # ── deciding ─────────────────────────────────────────────────────────────────────────────────────────────

    def leader(self) -> Contestant | None:
        known = [one for one in self.contestants if one.blocks and one.over not in ("failed", "timeout")]
        return min(known, key=lambda one: one.call_ms() or float("inf"), default=None)

    def speedup(self, one: Contestant, confidence: float = 0.95) -> Interval | None:
        """Over the baselines: the interval that holds against each. None while there are too few rounds for one."""
        found = [ratio for base in self.baselines if (ratio := against(base, one, confidence)) is not None]
        if not found:
            return None
        middle = sorted(ratio.ratio for ratio in found)[len(found) // 2]
        return Interval(middle, min(ratio.low for ratio in found), max(ratio.high for ratio in found))

    def _eliminate(self, running: Sequence[Contestant]) -> None:
        leader = self.leader()
        if leader is None:
            return
        for one in running:
            if one is leader or one.over:
                continue
            behind = against(leader, one)
            expensive = (one.call_ms() or 0.0) > LONG_CALL_MS
            far = FAR_BEHIND if self.round >= EARLY_ROUNDS else HOPELESS
            if expensive and _always_behind(leader, one, far):
                one.over = f"behind {leader.name} by far in each of {self.round} rounds"
            elif self.round >= FEWEST_ROUNDS and behind is not None and behind.high < 1:
                one.over = f"behind {leader.name}"


def against(base: Contestant, one: Contestant, confidence: float = 0.95) -> Interval | None:
    """How many times longer a call of `base` takes than one of `one`, from the rounds that both were in."""
    pairs = [(b.call_ms, o.call_ms) for b, o in zip(base.blocks, one.blocks, strict=False) if b and o]
    if not pairs:
        return None
    ratio = paired_ratio([b for b, _ in pairs], [o for _, o in pairs], confidence)
    return ratio if ratio.low > 0 else None  # too few rounds: nothing is known of the ends


def _always_behind(leader: Contestant, one: Contestant, times: float) -> bool:
    pairs = zip(leader.blocks, one.blocks, strict=False)
    return all(o.call_ms > times * b.call_ms for b, o in pairs if b and o)
