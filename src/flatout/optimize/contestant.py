"""An artefact in a process of its own, with one setting of its runtime: opened, asked, timed."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from flatout.model.case import Latency
from flatout.optimize.lineup import Candidate
from flatout.optimize.work.process import Worker, WorkFailed
from flatout.routes._route import Setting
from flatout.subject.subject import Array, Subject

OPEN_SECONDS = 120.0
SCREENED = 512
"""Held-out samples that a candidate answers while candidates are screened: the same for all, so that they compare."""
ANSWER_SECONDS = 20.0
"""As long as that may take; those that are slower answer fewer."""
FEWEST = 32


@dataclass(frozen=True)
class Block:
    times: list[float]
    cpu_ms: float
    joules: float | None = None

    @property
    def call_ms(self) -> float:
        """The mean: what a stream of calls gets, hiccups included."""
        return statistics.fmean(self.times)


@dataclass
class Contestant:
    candidate: Candidate
    setting: Setting
    batch: int
    worker: Worker | None = None
    load_ms: float = 0.0
    warm_ms: float = 1.0
    """Of a call while it was opened: a first guess."""
    memory_bytes: int = 0
    blocks: list[Block | None] = field(default_factory=list)
    """One for each round; None where it did not take part."""
    over: str = ""
    note: str = ""

    @property
    def name(self) -> str:
        told = " ".join(f"{key}={value}" for key, value in self.setting.items())
        return f"{self.candidate.name} {told}".strip()

    # ── in its process ───────────────────────────────────────────────────────────────────────────────────────

    def open(self, subject: Subject, worker: Worker, memory_limit: int) -> None:
        """In a fresh process, which loads the artefact and nothing else."""
        self.worker = worker
        said = self.worker.ask(
            "open",
            OPEN_SECONDS,
            memory_limit,
            route=self.candidate.route.name,
            directory=str(self.candidate.directory),
            setting=dict(self.setting),
            batch=self.batch,
            feeds=feeds(subject),
        )
        self.load_ms, self.warm_ms = said["load_ms"] + said["first_ms"], max(said["call_ms"], 1e-3)
        self.memory_bytes = int(said["peak_bytes"])

    def answers(
        self,
        subject: Subject,
        output: Path,
        most: int = SCREENED,
        fewest: int = FEWEST,
        seconds: float = ANSWER_SECONDS,
    ) -> list[Array]:
        """What it says to held-out samples, to so many, or to as many as the time allows."""
        assert self.worker is not None
        in_time = math.ceil(1e3 * seconds / self.warm_ms) * max(self.batch, 1)
        most = min(most, max(fewest, in_time))
        self.worker.ask("answer", 20 * seconds + 60, feeds=feeds(subject), output=str(output), at_most=most)
        with np.load(output, allow_pickle=False) as stored:
            return [stored[f"out{i}"] for i in range(len(stored.files))]

    def run(self, seconds: float, at_least: int) -> dict[str, Any]:
        assert self.worker is not None
        limit = 60.0 + 20 * max(seconds, at_least * self.warm_ms / 1e3)
        said = self.worker.ask("time", limit, seconds=seconds, at_least=at_least)
        self.memory_bytes = max(self.memory_bytes, int(said["peak_bytes"]))
        return said

    def close(self) -> None:
        if self.worker is not None:
            self.worker.end()
            self.worker = None

    def fail(self, error: WorkFailed) -> None:
        self.over, self.note = ("timeout" if error.how == "timeout" else "failed"), str(error)
        self.close()

    # ── what was measured ────────────────────────────────────────────────────────────────────────────────────

    def call_ms(self) -> float | None:
        times = [block.call_ms for block in self.blocks if block is not None]
        return statistics.median(times) if times else None

    def latency(self) -> Latency | None:
        blocks = [block for block in self.blocks if block is not None]
        times = [t for block in blocks for t in block.times]
        if not times:
            return None
        p50, p95, p99 = (float(value) for value in np.percentile(times, (50, 95, 99)))
        joules = [block.joules / len(block.times) for block in blocks if block.joules is not None]
        return Latency(
            batch=self.batch,
            p50=p50,
            p95=p95,
            p99=p99,
            calls=len(times),
            throughput=1e3 * max(self.batch, 1) / statistics.fmean(times),
            joules=statistics.median(joules) if joules else None,
        )


def feeds(subject: Subject) -> list[str]:
    return [str(subject.directory / "held_out.npz"), *(f"in{i}" for i in range(len(subject.inputs)))]
