"""What each stage of a pipeline costs, measured with the stage alone.

TensorFlow's own statistics do not show it: they see fused stages as one, count waiting as work, and compute small
numbers as differences of large ones. Here a sample of a stage's input is held in memory and passed to it repeatedly, on
one thread, with all of TensorFlow's rewrites off. The same sample without the stage runs in turns with it. The
difference is the cost of the stage: wall time, without the time that other processes took (`clock`), and CPU time.
Elements are consumed by a `window`, so that no Python runs between them.

The program's functions run for this as they would in another epoch; caches and shuffles of the program are not touched.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flatout.observe import stages
from flatout.pipeline import options, recipes
from flatout.pipeline.clock import Clock, Times

PASSED_THROUGH = {
    "Take",
    "Skip",
    "Repeat",
    "Options",
    "Concatenate",
    "TakeWhile",
    "Shard",
    "Unique",
    "ShuffleAndRepeat",
}
"""Stages that count elements and hand them on; over a sample that is repeated without end they would end or starve."""
KEPT = {"Cache", "Snapshot"}
"""Stages that keep what they were given: they are not made again, as they would keep it twice, or in a user's file."""
GATHER = {"Interleave", "ParallelInterleave", "FlatMap", "TFRecord", "TextLine", "FixedLengthRecord", "Unbatch"}
"""Stages that may give any number of elements for one."""
UNEVEN = {"Filter", "Window", "RaggedBatch", "GroupByWindow", "Rebatch"}
"""Stages that take any number of elements for one."""

PASS_SECONDS = 0.12
"""How long one pass over a sample should take."""
FEWEST, MOST = 4, 2048
TUNING = (
    "autotune.enabled",
    "experimental_optimization.apply_default_optimizations",
    "experimental_optimization.inject_prefetch",
)
PROBE = 4
FEWEST_ROUNDS, MOST_ROUNDS = 5, 25
SHUFFLED = 4096
"""A shuffle costs the same for each element, however large its buffer; filling it is the cost of what comes before."""


@dataclass(frozen=True)
class Cost:
    """Per element that the stage gives."""

    ms: float
    cpu_ms: float
    low: float
    high: float
    """The quartiles of the rounds' wall time."""
    ratio: float
    """Elements out for each element in."""
    bytes: int
    sample: int
    rounds: int


@dataclass(frozen=True)
class Limits:
    seconds: float = 1.5
    """For each stage."""
    bytes: int = 256 << 20
    """For all samples together."""


@dataclass(frozen=True)
class _Held:
    """A sample of what a stage gives, in memory."""

    dataset: Any
    count: int
    bytes: int


class Costs:
    """Costs of the stages of one or more pipelines; stages in common are measured once."""

    def __init__(self, limits: Limits | None = None, report: Callable[[str], None] = lambda _: None) -> None:
        self.limits = limits or Limits()
        self.failed: dict[int, str] = {}
        self._report = report
        self._left = self.limits.bytes
        self._costs: dict[int, Cost] = {}
        self._held: dict[int, _Held] = {}
        self._kept: list[Any] = []

    def of(self, stage: Any) -> Cost | None:
        """The cost of a stage; None where it could not be measured, and `failed` says why."""
        stage = stages.plain(stage)
        try:
            self._sample(stage)
        except Exception as error:
            self.failed.setdefault(id(stage), f"{type(error).__name__}: {str(error)[:200]}")
        return self._costs.get(id(stage))

    def _sample(self, stage: Any) -> _Held:
        found = self._held.get(id(stage))
        if found is None:
            self._kept.append(stage)  # ids are only good while the stage lives
            inputs = [self._sample(before) for before in recipes.upstream(stage)]
            self._report(f"measuring {stages.kind(stage)} at {stages.location(stage)}")
            found = self._held[id(stage)] = self._measured(stage, inputs)
        return found

    def _measured(self, stage: Any, inputs: list[_Held]) -> _Held:
        if inputs and stages.kind(stage) in PASSED_THROUGH | KEPT:
            base = inputs[0]
            read = _per_element(base) if stages.kind(stage) in KEPT else 0.0
            self._costs[id(stage)] = Cost(read, read, read, read, _expected(stage), base.bytes, base.count, 0)
            return base
        try:
            alone, base_line = _alone(stage, inputs)
            held = self._hold(stage, alone, inputs)
            ratio = self._ratio(stage, inputs)
        except Exception as error:
            if not inputs:
                raise
            self.failed[id(stage)] = f"{type(error).__name__}: {str(error)[:200]}"
            return self._as_it_runs(stage)
        self._costs[id(stage)] = self._timed(alone, base_line, inputs, held, ratio)
        return held

    def _as_it_runs(self, stage: Any) -> _Held:
        """A stage that cannot be put on other inputs has no cost of its own; those behind it still have."""
        return self._hold(stage, plainly(stage), [])

    def _hold(self, stage: Any, alone: Any, inputs: list[_Held]) -> _Held:
        """Elements enough for a pass of the wanted length, within the memory that is left."""
        probe, seconds, size = _look(alone, PROBE)
        if not probe:
            raise ValueError("it gave no element")
        each = max(size // probe, 1)
        wanted = math.ceil(PASS_SECONDS / max(seconds / probe, 1e-7))
        count = max(min(wanted, MOST, self._left // (4 * each)), min(FEWEST, probe))
        limit = getattr(inputs[0], "count", None) if inputs and stages.kind(stage) not in GATHER else None
        if limit is not None:
            count = min(count, max(math.ceil(limit * _expected(stage)), 1))
        dataset = alone.take(count).cache()
        found = sum(1 for _ in dataset)
        self._left -= found * each
        return _Held(dataset, found, each)

    def _ratio(self, stage: Any, inputs: list[_Held]) -> float:
        """Elements out for each element in, counted where the stage alone does not tell."""
        if not inputs:
            return 1.0
        if stages.kind(stage) not in GATHER | UNEVEN:
            return _expected(stage)
        once = recipes.replay_once(stage, _swap(stage, [held.dataset for held in inputs]), _serially(stage))
        given, until = 0, time.perf_counter() + self.limits.seconds
        for _ in plainly(once).window(1):
            given += 1
            if time.perf_counter() > until:  # then it is more than that, and what comes before matters the less
                break
        return max(given, 1) / max(inputs[0].count, 1)

    def _timed(self, alone: Any, base: Any, inputs: list[_Held], held: _Held, ratio: float) -> Cost:
        entering = max(round(held.count / ratio), 1) if inputs else held.count
        with_stage = iter(alone.window(held.count))
        without = iter(base.window(entering))
        _pull(with_stage), _pull(without)  # the first pass makes kernels and fills a shuffle
        walls: list[float] = []
        cpus: list[float] = []
        began = time.perf_counter()
        while len(walls) < MOST_ROUNDS:
            if len(walls) >= FEWEST_ROUNDS and time.perf_counter() - began > self.limits.seconds:
                break
            took, base_took = _pull(with_stage), _pull(without)
            walls.append((took.wall - base_took.wall) / held.count)
            cpus.append((took.cpu - base_took.cpu) / held.count)
        walls.sort()
        cpus.sort()
        quarter = len(walls) // 4
        return Cost(
            ms=max(_middle(walls), 0.0) * 1e3,
            cpu_ms=max(_middle(cpus), 0.0) * 1e3,
            low=max(walls[quarter], 0.0) * 1e3,
            high=max(walls[-1 - quarter], 0.0) * 1e3,
            ratio=ratio,
            bytes=held.bytes,
            sample=held.count,
            rounds=len(walls),
        )


def _serially(stage: Any) -> dict[str, Any]:
    """The arguments with which a stage makes one call at a time, and does not fill a large buffer first."""
    recipe = recipes.recipe_of(stage)
    if recipe is None:
        return {}
    changed: dict[str, Any] = {}
    if stages.kind(stage) == "Shuffle" and (stages.setting(stage, "_buffer_size") or 0) > SHUFFLED:
        changed["buffer_size"] = SHUFFLED
    for name in ("num_parallel_calls", "num_parallel_reads"):
        if recipe.arguments.get(name) is not None:
            changed |= {name: None}
    if changed and "deterministic" in recipe.arguments:
        changed["deterministic"] = None
    if changed and recipe.arguments.get("use_unbounded_threadpool"):
        changed["use_unbounded_threadpool"] = None
    return changed


def _swap(stage: Any, replaced: list[Any]) -> dict[int, Any]:
    return {id(before): after for before, after in zip(recipes.upstream(stage), replaced, strict=True)}


def _alone(stage: Any, inputs: list[_Held]) -> tuple[Any, Any]:
    """The stage on its sample without end, and the sample by itself."""
    import tensorflow as tf

    if not inputs:
        return plainly(stage.repeat()), plainly(tf.data.Dataset.range(1).repeat())
    endless = [held.dataset.repeat() for held in inputs]
    made = recipes.replay_once(stage, _swap(stage, endless), _serially(stage))
    return plainly(made), plainly(endless[0])


def plainly(dataset: Any) -> Any:
    """The dataset as written and no other way: nothing rewritten, nothing tuned, nothing parallel."""
    return options.changed(dataset, dict.fromkeys(TUNING, False))


def _expected(stage: Any) -> float:
    """Elements out for each element in, as the stage was written."""
    if stages.kind(stage) == "Shard":
        return 1.0 / max(stages.setting(stage, "_num_shards") or 1, 1)
    size = stages.setting(stage, "_batch_size") if "Batch" in stages.kind(stage) else None
    return 1.0 / size if isinstance(size, int) and size > 0 else 1.0


def _look(dataset: Any, count: int) -> tuple[int, float, int]:
    """How many elements came of those asked for, in what time without the first, and how large they are."""
    found, size, times = 0, 0, []
    before = time.perf_counter()
    for element in dataset.take(count):
        times.append(time.perf_counter() - before)
        found += 1
        size += bytes_of(element)
        before = time.perf_counter()
    steady = times[1:] or times
    return found, sum(steady) / max(len(steady), 1) * found, size


def bytes_of(element: Any) -> int:
    import tensorflow as tf

    total = 0
    for tensor in tf.nest.flatten(element, expand_composites=True):
        if getattr(tensor, "dtype", None) == tf.string:
            total += (
                sum(len(text) + 24 for text in tensor.numpy().reshape(-1)[:1000])
                if tensor.shape.rank
                else (len(tensor.numpy()) + 24)
            )
        elif hasattr(tensor, "dtype") and tensor.dtype.size:
            total += int(tf.size(tensor)) * int(tensor.dtype.size)
    return total


def _pull(iterator: Any) -> Times:
    """What the next window takes."""
    clock = Clock.now()
    next(iterator)
    return clock.passed()


def _per_element(held: _Held) -> float:
    rows = iter(plainly(held.dataset.repeat()).window(held.count))
    _pull(rows)
    return _middle(sorted(_pull(rows).wall for _ in range(FEWEST_ROUNDS))) / held.count * 1e3


def _middle(ordered: list[float]) -> float:
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
