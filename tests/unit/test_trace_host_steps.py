"""The split of marked steps, on written traces whose every microsecond is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from trace_bytes import Event, plane, space

from flatout.trace import load
from flatout.trace.host_steps import StepSplit, split_steps
from flatout.trace.intervals import Intervals

US = 1000.0  # nanoseconds


def event(name: str, start_us: float, length_us: float, **stats: object) -> Event:
    return (name, start_us * US, length_us * US, stats)


def mark(number: int, at_us: float, length_us: float = 90) -> Event:
    return event("train", at_us, length_us, step_num=number)


def split(tmp_path: Path, *planes: bytes, pipeline_ops: tuple[str, ...] = ()) -> StepSplit | None:
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(space(*planes))
    return split_steps(load(path), pipeline_ops)


def host(main: list[Event], **others: list[Event]) -> bytes:
    lines = {"python": sorted(main, key=lambda item: item[1])}
    for name, events in others.items():
        lines[name.replace("__", "/")] = sorted(events, key=lambda item: item[1])
    return plane("/host:CPU", lines)


def microseconds(found: StepSplit | None) -> dict[str, list[float]]:
    assert found is not None
    return {name: (times / 1e6).tolist() for name, times in found.parts.items()}


def test_each_moment_of_a_step_belongs_to_one_part(tmp_path: Path) -> None:
    """Two steps of 100 µs: 20 wait for input, 50 in a call, of which 30 compute and 20 nothing; 30 are Python's."""
    main, ops = [mark(2, 200)], []
    for step in range(2):
        at = step * 100
        main += [
            mark(step, at),
            event("EagerLocalExecute: IteratorGetNext", at + 10, 20),
            event("EagerLocalExecute: __inference_train_step_12", at + 40, 50),
        ]
        ops.append(event("model/dense/MatMul:MatMul", at + 50, 30))
    found = split(tmp_path, host(main, tf_Compute=ops))
    parts = microseconds(found)
    assert parts == {
        "compute": [30, 30], "copy": [0, 0], "input": [20, 20], "trace": [0, 0], "idle": [20, 20], "python": [30, 30],
    }  # fmt: skip
    assert found is not None
    assert found.count == 2
    (op,) = found.ops
    assert (op.name, op.type, op.count, op.eager) == ("model/dense/MatMul", "MatMul", 2, False)
    assert op.seconds == pytest.approx(60e-6)


def test_ops_that_overlap_count_once_and_hide_the_wait(tmp_path: Path) -> None:
    """Two cores compute 10–50 and 30–70; the wait from 60 to 90 shows only where nothing computes."""
    main = [mark(0, 0), mark(1, 100), event("EagerLocalExecute: IteratorGetNext", 60, 30)]
    threads = {
        "one": [event("a:MatMul", 10, 40), event("call:PartitionedCall", 0, 100)],
        "two": [event("b:Conv2D", 30, 40)],
    }
    parts = microseconds(split(tmp_path, host(main, **threads)))
    assert (parts["compute"], parts["input"], parts["python"]) == ([60], [20], [20])


def test_tracing_is_neither_python_nor_idle(tmp_path: Path) -> None:
    main = [
        mark(0, 0),
        mark(1, 100),
        event("tf.function-graph_building", 5, 60),
        event("EagerLocalExecute: __inference_step_3", 70, 20),
    ]
    parts = microseconds(split(tmp_path, host(main)))
    assert (parts["trace"], parts["idle"], parts["python"]) == ([60], [20], [20])


def test_a_mark_may_hold_several_steps(tmp_path: Path) -> None:
    """steps_per_execution=4: marks 0, 4 and 8 are two spans of four steps; the last mark was never finished."""
    main = [mark(0, 0), mark(4, 400), mark(8, 1000, 5), event("SessionRun", 100, 200)]
    found = split(tmp_path, host(main, ops=[event("x:MatMul", 150, 100)]))
    assert found is not None
    assert found.steps.tolist() == [4, 4]
    assert found.count == 8
    parts = microseconds(found)
    assert (parts["compute"], parts["idle"], parts["python"]) == ([100, 0], [100, 0], [200, 600])


def test_the_first_of_many_spans_is_the_profilers(tmp_path: Path) -> None:
    main = [mark(step, step * 100) for step in range(7)]
    found = split(tmp_path, host(main))
    assert found is not None
    assert found.count == 5
    assert (found.start - found.start[0]).tolist() == [step * 100_000_000 for step in range(5)]


def test_work_ahead_of_the_step_is_the_pipelines(tmp_path: Path) -> None:
    main = [mark(0, 0), mark(1, 100)]
    behind = [event("decode:DecodeJpeg", 10, 50), event("Iterator::Prefetch::Map", 5, 60)]
    found = split(tmp_path, host(main, tf_data_iterator=behind))
    assert found is not None
    assert found.ops == ()
    assert [(op.name, op.type) for op in found.pipeline_ops] == [("decode", "DecodeJpeg")]
    assert [(stage.path, stage.count) for stage in found.stages] == [("Iterator::Prefetch::Map", 1)]
    assert microseconds(found)["python"] == [100]


def test_a_step_inside_a_dataset_computes(tmp_path: Path) -> None:
    """`for x in dataset` in a tf.function: the step's ops run on the pipeline's threads, beside the pipeline's own."""
    main = [mark(0, 0), mark(1, 100)]
    reducing = [
        event("ReduceIterator::Root::Scan::Map", 0, 20),
        event("decode:DecodeJpeg", 5, 10),
        event("train/MatMul:MatMul", 30, 40),
    ]
    found = split(tmp_path, host(main, tf_data_reduce=reducing), pipeline_ops=("decode",))
    assert found is not None
    assert [op.name for op in found.ops] == ["train/MatMul"]
    assert [op.name for op in found.pipeline_ops] == ["decode"]
    parts = microseconds(found)
    assert (parts["compute"], parts["input"], parts["python"]) == ([40], [20], [40])


def test_eager_ops_compute_where_their_kernels_run(tmp_path: Path) -> None:
    """Outside of functions a kernel counts; inside one its ops would be counted twice."""
    main = [
        mark(0, 0),
        mark(1, 100),
        event("EagerLocalExecute: MatMul", 10, 30),
        event("KernelAndDeviceOp::Run", 15, 20),
        event("EagerLocalExecute: __inference_step_3", 50, 40),
        event("KernelAndDeviceFunc::Run", 55, 30),
    ]
    found = split(tmp_path, host(main))
    parts = microseconds(found)
    assert (parts["compute"], parts["idle"], parts["python"]) == ([20], [40], [40])
    assert found is not None
    assert [(op.type, op.count, op.eager) for op in found.ops] == [("MatMul", 1, True)]


def test_with_an_accelerator_its_kernels_are_the_compute(tmp_path: Path) -> None:
    main = [mark(0, 0), mark(1, 100), event("EagerLocalExecute: __inference_step_3", 10, 80)]
    device = plane(
        "/device:GPU:0",
        {"Stream #1": [event("MemcpyH2D", 20, 20), event("gemm", 30, 40)], "Steps": [event("0", 0, 100)]},
    )
    parts = microseconds(split(tmp_path, host(main, ops=[event("a:MatMul", 0, 100)]), device))
    assert (parts["compute"], parts["copy"], parts["idle"], parts["python"]) == ([40], [10], [30], [20])


@pytest.mark.parametrize(
    "marks", [[], [mark(0, 0)], [mark(3, 0), mark(3, 100)], [mark(0, 5), mark(1, 5)], [event("train", 0, 9)]]
)
def test_without_two_marks_there_are_no_steps(marks: list[Event], tmp_path: Path) -> None:
    assert split(tmp_path, host([*marks, event("x:MatMul", 5, 5)])) is None


def test_without_a_host_there_are_no_steps(tmp_path: Path) -> None:
    assert split(tmp_path, plane("/device:GPU:0", {"Stream #1": [event("gemm", 0, 5)]})) is None


# ── intervals ────────────────────────────────────────────────────────────────────────────────────────────────


def of(*pairs: tuple[int, int]) -> Intervals:
    return Intervals.union([(np.array([a], np.int64), np.array([b], np.int64)) for a, b in pairs])


def test_a_union_is_sorted_and_disjoint() -> None:
    found = of((50, 60), (0, 10), (5, 20), (20, 30), (55, 56), (40, 40))
    assert list(zip(found.start.tolist(), found.end.tolist(), strict=True)) == [(0, 30), (50, 60)]
    joined = found.joined(of((25, 52)))
    assert (joined.start.tolist(), joined.end.tolist()) == ([0], [60])


def test_what_lies_within_spans() -> None:
    low, high = np.array([0, 15, 31, -5, 0], np.int64), np.array([15, 55, 49, 100, 0], np.int64)
    assert of((0, 30), (50, 60)).within(low, high).tolist() == [15, 20, 0, 40, 0]
    assert of().within(low, high).tolist() == [0] * 5


def test_points_inside() -> None:
    points = np.array([-1, 0, 29, 30, 49, 59, 60], np.int64)
    assert of((0, 30), (50, 60)).contains(points).tolist() == [False, True, True, False, False, True, False]
    assert not of().contains(points).any()


def test_calls_in_which_xla_compiles_are_no_computing(tmp_path: Path) -> None:
    """Two steps of 100 µs in one call each. The first compiles for 60 and computes for 10; the second computes only."""
    main = [mark(2, 200)]
    for step in range(2):
        at = step * 100
        main += [
            mark(step, at),
            event("EagerLocalExecute: __inference_step_7", at + 10, 80),
            event("__inference_step_7:__inference_step_7", at + 10, 80),
            event("CpuExecutable::ExecuteAsyncOnStream", at + 78, 10),
        ]
    found = split(tmp_path, host(main, xla_compile=[event("CpuCompiler::RunBackend", 15, 60)]))
    parts = microseconds(found)
    assert parts["compute"] == [10, 10]
    assert parts["trace"] == [70, 0]
    assert parts["idle"] == [0, 70]
    assert found is not None
    assert (found.compiling / 1e6).tolist() == [70, 0]
    assert found.compiles == 1


def test_python_beside_the_pipelines_python_is_told(tmp_path: Path) -> None:
    """Of 60 µs of Python in a step of 100, the generator runs during 25; while the step computes it does no harm."""
    main = [mark(0, 0), event("EagerLocalExecute: __inference_step_7", 20, 40), mark(1, 100)]
    compute = [event("model/dense/MatMul:MatMul", 20, 40)]
    found = split(
        tmp_path, host([*main, mark(2, 200)], tf_Compute=compute, tf_data_pool=[event("PyFunc:PyFunc", 5, 65)])
    )
    assert found is not None
    assert (found.contended / 1e6).tolist() == [25, 0]
    assert microseconds(found)["python"] == [60, 100]


def test_collectives_count_where_nothing_else_computes(tmp_path: Path) -> None:
    """The all-reduce runs from 40 to 90; until 60 the backward pass still computes. Waiting for a shard is input."""
    main = [mark(7, 0), mark(8, 100), mark(9, 200)]
    ops = [
        event("MultiDeviceIteratorGetNextFromShard:MultiDeviceIteratorGetNextFromShard", 0, 10),
        event("MatMul_1:MatMul", 20, 40),
        event("CollectiveReduceV2:CollectiveReduceV2", 40, 50),
    ]
    found = split(tmp_path, host(main, tf_Compute=ops))
    assert found is not None
    assert (found.collective / 1e6).tolist() == [30, 0]
    assert found.numbers.tolist() == [7, 8]
    assert microseconds(found)["input"] == [10, 0]
    assert microseconds(found)["compute"] == [70, 0]
