"""What limits a pipeline, computed from the costs of its stages."""

from __future__ import annotations

from typing import Any

import pytest

from flatout.data.ceilings import Machine, ceilings, pace
from flatout.model import codec
from flatout.model.case import Stage, StageDetail

TWO = Machine(cores=2.0, threads=2)


def stage(op: str, ms: float, cpu: float | None = None, **detail: Any) -> Stage:
    known = {"ms_per_batch": ms, "cpu_ms_per_batch": ms if cpu is None else cpu, **detail}
    return Stage(
        op, op, parallelism=detail.get("calls"), stateful=detail.get("state"), detail=codec.read(StageDetail, known)
    )


def critical(*stages: Stage, machine: Machine = TWO) -> str | None:
    found = ceilings(stages, machine).critical
    return None if found is None else str(stages[found].detail.other.get("name", stages[found].op))


def test_serial_stages_add_up_and_the_longest_is_critical():
    line = [stage("Range", 0.1), stage("Map", 2, 0, name="short"), stage("Map", 8, 0, name="long"), stage("Batch", 1)]
    assert pace(line, TWO) == pytest.approx(11.1)
    assert critical(*line) == "long"


def test_a_prefetch_divides_the_thread():
    line = [stage("Map", 4, 0), stage("Prefetch", 0), stage("Map", 5, 0)]
    assert pace(line, TWO) == 5


def test_calls_at_once_divide_the_time_up_to_the_threads():
    line = [stage("Map", 3, 0, name="serial"), stage("ParallelMap", 8, 0, calls="16", name="parallel")]
    assert pace(line, TWO) == 4
    assert pace(line, Machine(2.0, 16)) == 3
    assert critical(*line) == "parallel"
    assert critical(*line, machine=Machine(2.0, 16)) == "serial"


def test_the_cores_are_shared_by_all():
    line = [stage("ParallelMap", 10, calls="8"), stage("ParallelMap", 6, calls="8")]
    assert pace(line, Machine(2.0, 8)) == 8


def test_critical_is_what_would_help_most_and_not_what_computes_most():
    """Two cores are full: without the parallel map 8 are left for the serial one, without that one 5 for the other."""
    line = [stage("ParallelMap", 10, name="parallel"), stage("Map", 8, state="python", name="serial")]
    assert pace(line, TWO) == 9
    assert critical(*line) == "serial"


def test_what_tensorflow_makes_parallel_counts_as_parallel():
    written = stage("Map", 8, 0)
    assert pace([written], TWO) == 8
    assert pace([stage("Map", 8, 0, runs_as="ParallelMapV2")], TWO) == 4


def test_a_stateful_map_makes_one_call_at_a_time_also_where_it_is_fused():
    fused = stage("Map", 80, 0, state="python", runs_as="MapAndBatch", name="fused")
    line = [fused, stage("Map", 40, 0, name="behind")]
    assert pace(line, TWO) == 120
    assert critical(*line) == "fused"


def test_behind_a_cache_nothing_before_it_counts():
    line = [stage("Map", 50, name="decode"), stage("Cache", 0.2), stage("Map", 3, state="random", name="augment")]
    assert pace(line, TWO) == pytest.approx(3.2)
    assert critical(*line) == "augment"


def test_ceilings_of_cores_and_of_parallelism():
    line = [stage("TensorSlice", 0.5), stage("Map", 12), stage("Shuffle", 0.25), stage("Batch", 2)]
    found = ceilings(line, TWO)
    assert found.now == pytest.approx(14.75)
    assert found.divided == pytest.approx(14.75 / 2)
    assert found.unbounded == pytest.approx(0.5)


def test_python_code_that_computes_cannot_be_divided():
    assert ceilings([stage("Map", 10, 9, state="python")], TWO).unbounded == 10
    assert ceilings([stage("Map", 10, 1, state="python")], TWO).unbounded == 0


def test_nothing_measured_means_nothing_critical():
    assert ceilings([Stage("Range", "Range")], TWO).critical is None
