"""A trial of the program as a contestant: the process, the blocks of steps that it has run, how long a step takes."""

from __future__ import annotations

import functools
import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from flatout.measure import race
from flatout.measure.processors import Mark
from flatout.measure.race import Exit
from flatout.observe.levers import LeverReport, failed_levers
from flatout.report import words
from flatout.trial.child_process import ChildProcess, Ended, Launch, Overdue
from flatout.trial.messages import BlockDone

COSTLY_START = 0.05
"""Of an epoch's steps: what the start of one has to cost for blocks to be made of whole epochs."""
UNSETTLED = 0.25
"""A step after the pause that differs by this much from the later ones still profits from full buffers, or suffers from
cold caches."""
STALL_SECONDS = 2.0
STALL_TIMES = 20
"""A first call that takes longer than both, seconds and usual calls, is no effect of the pause."""
MOST_STARTS = 80
"""Of one program that keeps ending. A start from the fork server costs little, and the deadline is there anyway."""
BLOCK_LIMIT_SECONDS = 75.0


class Host(Protocol):
    """What a contestant needs of the race that it is in."""

    memory_limit: int | None

    def start(self, contestants: Sequence[Contestant]) -> None: ...

    def say(self, text: str) -> None: ...


@dataclass(frozen=True)
class Block(race.Block):
    """Units are steps; each time is that of a call, from the end of the call before to its own."""

    counts: Sequence[int] = ()
    """Steps of each call, where they differ."""
    starts: Sequence[int] = ()
    """Calls before which a dataset was begun anew."""
    queued: bool = False
    """Calls only queue their work: all of it was done at the end of the first and of the last."""

    def per_step(self, dropped: int) -> float:
        """Seconds of a step, without the first calls, on which the pause before them has an effect.

        A long call later on counts: a lever that compiles anew now and then is as slow as that. So does a first call
        that no pause can explain: the pause itself is not in its time, cold caches and empty buffers cost far less.
        """
        dropped = 1 if self.queued and len(self.times) > 1 else dropped
        counts = self.counts or [1] * len(self.times)
        steps = self.units * sum(counts[dropped:]) / sum(counts)
        usual = statistics.median(self.times[dropped:])
        stalled = sum(t for t in self.times[:dropped] if t > max(STALL_SECONDS, STALL_TIMES * usual))
        return (sum(self.times[dropped:]) + stalled) / steps

    @functools.cached_property
    def usual_seconds(self) -> float:
        if self.queued:
            counts = self.counts or [1] * len(self.times)
            first = 1 if len(self.times) > 1 else 0
            return sum(self.times[first:]) / (self.units * sum(counts[first:]) / sum(counts))
        if not self.counts:
            return statistics.median(self.times) * len(self.times) / self.units
        return statistics.median(t / max(n, 1) for t, n in zip(self.times, self.counts, strict=True))


@dataclass(eq=False)
class Contestant(race.Contestant):
    launch: Launch
    title: str
    levers: tuple[str, ...] = ()
    """Those it stands for; some may be in its sources, not in its launch."""
    host: Host | None = None
    """What has started it, and starts it again when the program has ended."""
    child: ChildProcess | None = None
    starts: int = 0
    steps: int = 2
    """Of its next block."""
    calls: int = 3
    """Calls that its next block has at least."""
    warm_seconds: float = 0.0
    """Of a step while it warmed up; 0 before that."""
    limit_seconds: float = BLOCK_LIMIT_SECONDS
    """How long a block may take."""
    done: int = 0
    """Steps made since it was last started."""
    ended_after: int | None = None
    """Steps after which the program ended by itself, the fewest seen."""
    epoch: int = 0
    """Steps from one start of a dataset to the next; 0 while unknown."""
    unchanged: bool = False
    """None of its levers has changed anything: there is nothing to compare."""
    ran_kept: str = ""
    """Why a cell of a notebook ran in its last start though it is kept."""
    report: dict[str, LeverReport] = field(default_factory=dict)
    directories: list[Path] = field(default_factory=list)
    peak_bytes: int = 0
    _unit_times: tuple[list[race.Block | None], list[float | None]] | None = None

    @property
    def name(self) -> str:
        """For people."""
        return words.change_here(self.levers) if self.levers else self.title

    # ── in the race ──────────────────────────────────────────────────────────────────────────────────────────

    def run_block(self) -> race.Block | Exit | None:
        """Runs its steps while everything else is held; a program that ends by itself is started again."""
        for _ in range(3):  # it may have to be closed, and started again, before the block
            if not self.active:
                return None
            if self.child is None:
                if self.starts >= MOST_STARTS:
                    return Exit("ended", "the program ends before enough steps were seen")
                assert self.host is not None
                self.host.start([self])
                continue
            mark = Mark.now()
            try:
                self.child.go(self.steps, self.calls)
                done = self.child.block(self.limit_seconds, self.host.memory_limit if self.host else None)
            except Ended as ended:
                if not self.child.ended_well:
                    return Exit("failed", str(ended))
                made = self.child.steps_made or self.done + self.steps
                self.ended_after = min(self.ended_after or made, made)
                self.close()
                continue
            except Overdue as overdue:
                return Exit("timeout", f"{overdue} for {self.steps} steps")
            block = self._block(done, mark.taken_since(done.cpu))
            return Exit("failed", self.failed_levers()) if self.failed_levers() else block
        return None

    def _block(self, done: BlockDone, taken: float) -> Block:
        assert self.child is not None
        self.child.hold()
        self.report, self.peak_bytes = done.levers, max(self.peak_bytes, self.child.peak_bytes)
        self.done += sum(done.counts)
        self.epoch = done.epoch_steps or self.epoch
        steps, starts = max(done.steps, 1), list(done.epoch_starts)
        return Block(list(done.times), steps, done.cpu, taken, list(done.counts), starts, done.queued)

    def failed_levers(self) -> str:
        """Why levers could not be installed, or have given up; empty where all are at work."""
        return failed_levers(self.report)

    def idle(self) -> bool:
        """Whether its levers were injected and have changed nothing so far."""
        injected = self.launch.levers and self.report and not self.launch.sources
        return bool(injected) and not any(facts.changes for facts in self.report.values())

    def why_idle(self) -> str:
        notes = [note for facts in self.report.values() for note in facts.notes]
        return "; ".join(notes) or "it found nothing to change in this program"

    def leave(self, exit: Exit) -> None:
        super().leave(exit)
        if self.host is not None and exit.why in ("failed", "timeout", "ended"):
            self.host.say(f"{self.name}: {exit.note}")

    def close(self) -> None:
        if self.child is not None:
            self.peak_bytes = max(self.peak_bytes, self.child.peak_bytes)
            self.child.end()
            self.child = None

    # ── what was measured ────────────────────────────────────────────────────────────────────────────────────

    def step_blocks(self) -> list[Block]:
        return [block for block in self.blocks if isinstance(block, Block)]

    def dropped(self) -> int:
        """Calls at the start of a block that are not like the later ones: the pause before it still has an effect."""
        if self.varies or any(block.queued for block in self.step_blocks()):
            return 1
        blocks = [block.times for block in self.step_blocks()]
        shortest = min((len(times) for times in blocks), default=0)
        if shortest < 4:
            return min(1, shortest - 1)
        steady = statistics.median(t for times in blocks for t in times[len(times) // 2 :])
        middle = (statistics.median(times[i] for times in blocks) for i in range(shortest // 2))
        # Only from the start on: a single step that is off further in is noise, or the program's own rhythm.
        unsettled = itertools.takewhile(lambda t: abs(t - steady) > UNSETTLED * steady, middle)
        return max(1, sum(1 for _ in unsettled))

    def rhythm(self) -> int:
        """Steps of an epoch whose start costs so much that blocks with and without one do not compare; else 0."""
        starts = [block.times[i] for block in self.step_blocks() for i in block.starts]
        if self.epoch < 2 or not starts:
            return 0
        ordinary = statistics.median(t for block in self.step_blocks() for t in block.times)
        return self.epoch if statistics.median(starts) - ordinary > COSTLY_START * ordinary * self.epoch else 0

    def unit_times(self) -> list[float | None]:
        """Computed once for the same blocks: each comparison with a baseline asks for them."""
        if self._unit_times is None or self._unit_times[0] != self.blocks:
            dropped = self.dropped()
            times = [
                block.per_step(min(dropped, len(block.times) - 1)) if isinstance(block, Block) else None
                for block in self.blocks
            ]
            self._unit_times = (list(self.blocks), times)
        return self._unit_times[1]

    def step_ms(self) -> float | None:
        seconds = self.unit_seconds()
        return seconds * 1e3 if seconds is not None else None
