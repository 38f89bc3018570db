"""A contestant: an artefact with one setting of its runtime, opened and timed in a process of its own."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from flatout.measure import race
from flatout.measure.race import Exit
from flatout.measure.race.rules import LONG_UNIT_SECONDS
from flatout.model.case import Latency
from flatout.optimize.candidates import Candidate
from flatout.optimize.energy import Meter
from flatout.process.worker import Worker, WorkFailed
from flatout.routes._route import Setting
from flatout.subject import Array, Subject, written_arrays

BLOCK_SECONDS = 0.15
OPEN_SECONDS = 120.0
SCREENED = 512
"""Held-out samples on which candidates are screened: the same for all, so that they can be compared."""
ANSWER_SECONDS = 20.0
"""Time limit for these answers; slower candidates answer fewer samples."""
FEWEST = 32


@dataclass(frozen=True)
class Block(race.Block):
    """Units are calls."""

    joules: float | None = None


@dataclass(eq=False)
class Contestant(race.Contestant):
    candidate: Candidate
    setting: Setting
    batch: int
    worker: Worker | None = None
    load_ms: float = 0.0
    warm_ms: float = 1.0
    """The time of a call right after opening: a first estimate."""
    memory_bytes: int = 0
    asked: int = 0
    """Samples that it was last given to answer."""
    held_out: int = 0
    """Samples that there are."""
    meter: Meter = field(default_factory=Meter)

    @property
    def name(self) -> str:
        setting = " ".join(f"{key}={value}" for key, value in self.setting.items())
        return f"{self.candidate.name} {setting}".strip()

    # ── in its process ───────────────────────────────────────────────────────────────────────────────────────

    def open(self, subject: Subject, worker: Worker, memory_limit: int) -> None:
        """Load the artefact in a fresh process, which loads nothing else."""
        self.worker = worker
        answer = self.worker.ask(
            "open",
            OPEN_SECONDS,
            memory_limit,
            route=self.candidate.route.name,
            directory=str(self.candidate.directory),
            setting=dict(self.setting),
            batch=self.batch,
            feeds=self._feeds(subject),
            finite=self.candidate.finite_only,
        )
        self.load_ms, self.warm_ms = answer["load_ms"] + answer["first_ms"], max(answer["call_ms"], 1e-3)
        self.memory_bytes = int(answer["peak_bytes"])

    def answers(
        self,
        subject: Subject,
        output: Path,
        most: int = SCREENED,
        fewest: int = FEWEST,
        seconds: float = ANSWER_SECONDS,
    ) -> list[Array]:
        """Its answers to held-out samples: to `most` of them, or to as many as the time allows."""
        assert self.worker is not None
        in_time = math.ceil(1e3 * seconds / self.warm_ms) * max(self.batch, 1)
        most = min(most, max(fewest, in_time))
        limit = 20 * seconds + 60
        told = self.worker.ask("answer", limit, feeds=self._feeds(subject), output=str(output), at_most=most)
        self.asked, self.held_out = int(told["asked"]), int(told["held_out"])
        return written_arrays(output, "out")

    def _feeds(self, subject: Subject) -> list[str]:
        """In the order of the artefact's inputs: a file made elsewhere may have another."""
        path, *names = feeds(subject)
        order = self.candidate.orders.inputs or range(len(names))
        return [path, *(names[list(order).index(place)] for place in range(len(names)))]

    def run_block(self) -> race.Block | Exit | None:
        before = self.meter.read()
        try:
            block = self.time_calls(at_least=1 if self._call_seconds() > LONG_UNIT_SECONDS else 3)
        except WorkFailed as error:
            return exit_of(error)
        return replace(block, joules=self.meter.joules(before, self.meter.read()))

    def time_calls(self, at_least: int) -> Block:
        """Calls for a moment, in its process; raises WorkFailed."""
        assert self.worker is not None
        limit = 60.0 + 20 * max(BLOCK_SECONDS, at_least * self.warm_ms / 1e3)
        answer = self.worker.ask("time", limit, seconds=BLOCK_SECONDS, at_least=at_least)
        self.memory_bytes = max(self.memory_bytes, int(answer["peak_bytes"]))
        times = [milliseconds / 1e3 for milliseconds in answer["times"]]
        return Block(times, len(times), len(times) * answer["cpu_ms"] / 1e3, answer["taken"])

    def close(self) -> None:
        if self.worker is not None:
            self.worker.end()
            self.worker = None

    def fail(self, error: WorkFailed) -> None:
        self.leave(exit_of(error))

    # ── what was measured ────────────────────────────────────────────────────────────────────────────────────

    def call_ms(self) -> float | None:
        """Of the median round."""
        seconds = self.unit_seconds()
        return 1e3 * seconds if seconds is not None else None

    def call_times(self) -> list[float]:
        """Milliseconds of every call in the rounds that count."""
        counted = self.blocks[self.counts_from :]
        return [1e3 * seconds for block in counted if block is not None for seconds in block.times]

    def latency(self) -> Latency | None:
        times = self.call_times()
        if not times:
            return None
        p50, p95, p99 = (float(value) for value in np.percentile(times, (50, 95, 99)))
        blocks = (block for block in self.blocks[self.counts_from :] if isinstance(block, Block))
        joules = [block.joules / block.units for block in blocks if block.joules is not None]
        return Latency(
            batch=self.batch,
            p50=p50,
            p95=p95,
            p99=p99,
            calls=len(times),
            throughput=1e3 * max(self.batch, 1) / statistics.fmean(times),
            joules=statistics.median(joules) if joules else None,
        )

    def _call_seconds(self) -> float:
        return self.unit_seconds() or self.warm_ms / 1e3


def exit_of(error: WorkFailed) -> Exit:
    return Exit("timeout" if error.how == "timeout" else "failed", str(error))


def feeds(subject: Subject) -> list[str]:
    return [str(subject.directory / "held_out.npz"), *(f"in{i}" for i in range(len(subject.inputs)))]
