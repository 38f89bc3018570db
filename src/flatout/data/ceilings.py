"""What limits a pipeline: the stage without which it would be fastest, and how fast it could become.

Stages between two thread boundaries (a prefetch, a parallel stage) share one thread, and their times add up. A parallel
stage divides its time by its number of concurrent calls. All of them share the cores. The slowest of these sets the
pace. Nothing is measured here: it is arithmetic on the stages of a Case, source first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from flatout.model.case import Stage

DIVISIBLE = {
    "Map", "ParallelMap", "Interleave", "ParallelInterleave", "FlatMap", "TFRecord", "Batch", "ParallelBatch",
    "PaddedBatch",
}  # fmt: skip
"""Stages that can make several calls at once."""
THREAD_BOUNDARIES = ("Prefetch",)
UNBOUND = float("inf")
BUSY = 0.7
"""Share of CPU time in the wall time above which Python code cannot run in parallel: it holds the interpreter."""


@dataclass(frozen=True)
class Machine:
    cores: float
    threads: int
    """Calls that can run at once: the size of the pipeline's thread pool, or the number of cores."""


@dataclass(frozen=True)
class Ceilings:
    """Milliseconds for one element that leaves the pipeline."""

    now: float
    """As it runs now, by the costs of its stages."""
    divided: float
    """With every divisible stage made parallel, on these cores."""
    unbounded: float
    """The same with unlimited cores: what parallelism cannot improve."""
    critical: int | None
    """The index of the stage without which the pipeline would be fastest."""


def ceilings(stages: Sequence[Stage], machine: Machine) -> Ceilings:
    now = pace(stages, machine)
    rest = {i: pace(stages, machine, without={i}) for i, stage in enumerate(stages) if cost(stage)}
    # Of several stages that change nothing, the most expensive one: it is the next to limit the pipeline.
    critical = min(rest, key=lambda i: (rest[i], -cost(stages[i]))) if rest else None
    return Ceilings(
        now=now,
        divided=pace(stages, Machine(machine.cores, 1 << 20), divided=True),
        unbounded=pace(stages, Machine(UNBOUND, 1 << 20), divided=True),
        critical=critical,
    )


def pace(stages: Sequence[Stage], machine: Machine, without: Collection[int] = (), divided: bool = False) -> float:
    """Milliseconds for one element of the last stage."""
    slowest, thread, cpu = 0.0, 0.0, 0.0
    first = _first_after_cache(stages)
    for index, stage in enumerate(stages):
        wall = 0.0 if index in without or index < first else cost(stage)
        cpu += 0.0 if index in without or index < first else cpu_cost(stage)
        calls = UNBOUND if divided and _divisible(stage) else calls_at_once(stage, machine)
        if calls > 1 or stage.op in THREAD_BOUNDARIES:
            slowest = max(slowest, thread, wall / calls)
            thread = 0.0
        else:
            thread += wall
    return max(slowest, thread, cpu / machine.cores)


def cost(stage: Stage) -> float:
    """Wall milliseconds for each element that leaves the pipeline."""
    return stage.detail.ms_per_batch or 0.0


def cpu_cost(stage: Stage) -> float:
    return stage.detail.cpu_ms_per_batch or 0.0


def calls_at_once(stage: Stage, machine: Machine) -> float:
    """Concurrent calls as TensorFlow runs the stage: it makes stateless maps parallel on its own."""
    runs_as = stage.detail.runs_as or stage.op
    if not runs_as.startswith(("Parallel", "MapAndBatch")):
        return 1
    if stage.op == "Map" and stage.stateful:
        return 1  # even fused with a batch, it makes one call at a time
    requested = stage.parallelism or "autotuned"
    return min(int(requested), machine.threads) if requested.isdigit() else machine.threads


def _first_after_cache(stages: Sequence[Stage]) -> int:
    """The index of the first stage that still runs once a cache is full."""
    caches = [i for i, stage in enumerate(stages) if stage.op in ("Cache", "Snapshot") and not stage.detail.depth]
    return max(caches, default=0)


def _divisible(stage: Stage) -> bool:
    if stage.op not in DIVISIBLE:
        return False
    return stage.stateful != "python" or cpu_cost(stage) < BUSY * cost(stage)
