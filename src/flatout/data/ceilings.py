"""What limits a pipeline: the stage without which it would be fastest, and how fast it could become.

Stages between two hand-overs (a prefetch, a parallel stage) share one thread, and their times add up; a parallel stage
divides its time among its calls; and all of them share the cores. The slowest of these sets the pace. Nothing here
measures: it is arithmetic over the stages of a Case, source first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from flatout.model.case import Stage

DIVISIBLE = {
    "Map", "ParallelMap", "Interleave", "ParallelInterleave", "FlatMap", "TFRecord", "Batch", "ParallelBatch",
    "PaddedBatch",
}  # fmt: skip
"""Stages that can make several calls at once, if they are asked to."""
HANDS_OVER = ("Prefetch",)
UNBOUND = float("inf")
BUSY = 0.7
"""Share of CPU in the wall time above which Python code cannot be divided: it holds the interpreter."""


@dataclass(frozen=True)
class Machine:
    cores: float
    threads: int
    """Calls that can run at once: the pool of the pipeline, or as many as there are cores."""


@dataclass(frozen=True)
class Ceilings:
    """Milliseconds for one element that leaves the pipeline."""

    now: float
    """As it is run, by the costs of its stages."""
    divided: float
    """With every stage that can be divided made parallel, on these cores."""
    unbounded: float
    """The same with cores without end: what no parallelism can help."""
    critical: int | None
    """The position of the stage without which the pipeline would be fastest."""


def ceilings(stages: Sequence[Stage], machine: Machine) -> Ceilings:
    now = pace(stages, machine)
    rest = {i: pace(stages, machine, without={i}) for i, stage in enumerate(stages) if cost(stage)}
    # Of several that change nothing, the dearest one: with the pace set by something else, it is next.
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
    first = _behind_cache(stages)
    for position, stage in enumerate(stages):
        wall = 0.0 if position in without or position < first else cost(stage)
        cpu += 0.0 if position in without or position < first else cpu_cost(stage)
        calls = UNBOUND if divided and _divisible(stage) else calls_at_once(stage, machine)
        if calls > 1 or stage.op in HANDS_OVER:
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
    """As TensorFlow runs the stage: it makes stateless maps parallel that were not written so."""
    runs_as = stage.detail.runs_as or stage.op
    if not runs_as.startswith(("Parallel", "MapAndBatch")):
        return 1
    if stage.op == "Map" and stage.stateful:
        return 1  # fused with a batch, it still makes one call at a time
    asked = stage.parallelism or "autotuned"
    return min(int(asked), machine.threads) if asked.isdigit() else machine.threads


def _behind_cache(stages: Sequence[Stage]) -> int:
    """The first position that still works once a cache is full."""
    caches = [i for i, stage in enumerate(stages) if stage.op in ("Cache", "Snapshot") and not stage.detail.depth]
    return max(caches, default=0)


def _divisible(stage: Stage) -> bool:
    if stage.op not in DIVISIBLE:
        return False
    return stage.stateful != "python" or cpu_cost(stage) < BUSY * cost(stage)
