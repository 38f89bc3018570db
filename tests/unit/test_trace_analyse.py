from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from trace_bytes import Event, Reference, plane, space

from flatout.model.case import Case
from flatout.model.errors import TraceUnreadable
from flatout.model.evidence.devices import Collective, HostWhileDeviceIdle, MatrixPrecision
from flatout.trace import analyse, load

FIXTURES = Path(__file__).parent.parent / "fixtures" / "traces"


def case_of(name: str) -> Case:
    return analyse(FIXTURES / f"{name}.xplane.pb.gz")


def write(folder: Path, *contents: bytes) -> list[Path]:
    paths = []
    for place, content in enumerate(contents):
        paths.append(folder / f"host{place}.xplane.pb")
        paths[-1].write_bytes(content)
    return paths


def kernels(step_ms: float, busy_ms: float, steps: int = 5, extra: list[Event] | None = None) -> list[Event]:
    """Steps of four kernels each, back to back, then idle until the next step."""
    module = {"hlo_module": Reference("jit_step")}
    events: list[Event] = []
    for step in range(steps):
        for part in range(4):
            name = f"ampere_sgemm_128x64_tn_{part}"
            at = step * step_ms * 1e6 + part * busy_ms / 4 * 1e6
            events.append((name, at, busy_ms / 4 * 1e6, {**module, "hlo_op": Reference(f"dot.{part}")}))
    return sorted(events + (extra or []), key=lambda event: event[1])


@pytest.mark.parametrize(
    ("name", "bound", "low", "high"),
    [
        ("keras-starved", "Host-bound", 0.05, 0.20),
        ("keras-fed", "Host-bound", 0.30, 0.55),
        ("tf-fp32", "Device-bound", 0.93, 0.99),
        ("tf-bf16", "Device-bound", 0.90, 0.97),
    ],
)
def test_real_gpu_traces_are_judged(name: str, bound: str, low: float, high: float) -> None:
    case = case_of(name)
    (device,) = case.devices
    assert case.verdict.startswith(bound)
    assert low < device.busy_share < high
    assert device.model == "NVIDIA H200"
    assert device.kernels[0].count > 0
    assert device.kernels[0].occupancy is not None
    assert case.ops[0].self_ms > 0


@pytest.mark.parametrize("name", ["keras-starved", "keras-fed", "tf-fp32", "tf-bf16"])
def test_busy_is_the_union_of_what_the_device_executed(name: str) -> None:
    intervals = []
    for line in load(FIXTURES / f"{name}.xplane.pb.gz").planes_like("/device:GPU")[0].lines:
        intervals += list(zip(line.start_ns.tolist(), line.end_ns.tolist(), strict=True))
    total, reach = 0.0, -1.0
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, reach))
        reach = max(reach, end)
    assert case_of(name).devices[0].busy_ms == pytest.approx(total / 1e6, rel=1e-6)


def test_precision_and_tensor_cores_are_told() -> None:
    tf32 = case_of("tf-fp32")
    assert tf32.devices[0].precision == "TF32"
    assert "TF32" in tf32.verdict
    assert "ran in TF32" in tf32.evidence_of(MatrixPrecision)[0].note
    assert 0.4 < (tf32.devices[0].tensor_core_share or 0) < 0.6
    bf16 = case_of("tf-bf16").devices[0]
    assert bf16.precision == "bf16"
    assert 0.3 < (bf16.tensor_core_share or 0) < 0.5


def test_steps_copies_and_the_idle_host_are_found() -> None:
    case = case_of("keras-starved")
    assert case.steps is not None
    assert case.steps.count == 3
    assert case.steps.ms.median == pytest.approx(73.8, abs=0.5)
    assert case.steps.split_ms is not None
    assert case.steps.split_ms.total() == pytest.approx(case.steps.ms.median)
    assert case.steps.split_ms.idle > 0.8 * case.steps.ms.median
    copies = {copy.kind: copy for copy in case.devices[0].copies}
    assert copies["host-to-device"].bytes > 30_000_000
    assert "$time sleep" in {item.note for item in case.evidence_of(HostWhileDeviceIdle)}


def test_plain_fit_on_the_cpu_has_steps() -> None:
    case = case_of("cpu-fit")
    assert case.steps is not None
    assert case.steps.count == 8
    assert "multi_step_on_iterator" in case.steps.found_by
    assert case.devices[0].kind == "cpu"
    assert any("MatMul" in op.type for op in case.ops)


def test_marked_steps_are_taken_at_their_word() -> None:
    steps = case_of("cpu-marked").steps
    assert steps is not None
    assert (steps.count, steps.found_by) == (8, "step_num of the 'train' events")


def test_every_case_round_trips() -> None:
    paths = sorted(FIXTURES.glob("*.xplane.pb.gz"))
    assert len(paths) >= 6
    for path in paths:
        case = analyse(path)
        assert Case.from_json(json.loads(json.dumps(case.to_json(), allow_nan=False))) == case


def test_a_tpu_plane(tmp_path: Path) -> None:
    steps = [(str(n), n * 10e6, 9.5e6, {}) for n in range(6)]
    ops: list[Event] = []
    for n in range(6):
        ops += [
            ("while.1", n * 10e6, 6e6, {}),
            ("fusion.2", n * 10e6 + 1e6, 4e6, {}),
            ("copy.3", n * 10e6 + 7e6, 1e6, {}),
        ]
    shared = {"fusion.2": {"hlo_category": Reference("convolution fusion"), "tf_op": Reference("model/conv:Conv2D")}}
    content = plane("/device:TPU:0", {"Steps": steps, "XLA Modules": steps, "XLA Ops": ops}, shared=shared)
    case = analyse(write(tmp_path, space(content)))
    (device,) = case.devices
    assert case.steps is not None
    assert (device.kind, case.steps.count) == ("tpu", 6)
    assert case.steps.ms.median == pytest.approx(10)
    assert device.busy_ms == pytest.approx(6 * 7)
    assert device.window_ms == pytest.approx(58)
    by_name = {op.name: op for op in case.ops}
    assert by_name["model/conv"].type == "convolution fusion"
    assert by_name["model/conv"].self_ms == pytest.approx(4)
    assert by_name["while.1"].self_ms == pytest.approx(2)


def test_a_second_gpu_without_work_is_seen(tmp_path: Path) -> None:
    first = plane("/device:GPU:0", {"Stream #1(Compute)": kernels(10, 9)})
    second = plane("/device:GPU:1", {"Stream #1(Compute)": [("MemcpyH2D", 1e6, 1e6, {})]})
    third = plane("/device:GPU:2", {})
    shares = {
        device.name: device.busy_share for device in analyse(write(tmp_path, space(first, second, third))).devices
    }
    assert shares["GPU:0"] == pytest.approx(45 / 49)
    assert shares["GPU:1"] == pytest.approx(1 / 49)
    assert shares["GPU:2"] == 0


def test_lines_that_repeat_others_are_not_counted_twice(tmp_path: Path) -> None:
    whole = [("jit_step", 0.0, 100e6, {})]
    content = plane("/device:GPU:0", {"Stream #1(Compute)": kernels(10, 2), "XLA Modules": whole, "Steps": whole})
    assert analyse(write(tmp_path, space(content))).devices[0].busy_ms == pytest.approx(10)


def test_full_precision_on_a_gpu_is_told(tmp_path: Path) -> None:
    device = analyse(write(tmp_path, space(plane("/device:GPU:0", {"Stream #1(Compute)": kernels(10, 9)})))).devices[0]
    assert (device.precision, device.tensor_core_share) == ("fp32", 0)


def test_a_slow_host_is_named(tmp_path: Path) -> None:
    hosts = [
        space(plane("/device:GPU:0", {"Stream #1(Compute)": kernels(step, 8)}), host=name)
        for name, step in (("a", 10), ("b", 10.2), ("c", 14))
    ]
    case = analyse(write(tmp_path, *hosts))
    assert [host.name for host in case.hosts if host.straggler] == ["c"]
    assert "c holds the other hosts up" in case.verdict
    assert len(case.devices) == 3


def test_a_host_that_others_wait_for_in_collectives_is_named(tmp_path: Path) -> None:
    hosts = []
    for name, work in (("a", 4), ("b", 8), ("c", 4)):
        waiting = [("ncclDevKernel_AllReduce", (n * 10 + work) * 1e6, (9 - work) * 1e6, {}) for n in range(5)]
        lines = {"Stream #1(Compute)": kernels(10, work), "Stream #2(Compute)": waiting}
        hosts.append(space(plane("/device:GPU:0", lines), host=name))
    case = analyse(write(tmp_path, *hosts))
    assert [host.name for host in case.hosts if host.straggler] == ["b"]
    assert case.evidence_of(Collective)


def test_one_damaged_host_does_not_hide_the_others(tmp_path: Path) -> None:
    good = space(plane("/device:GPU:0", {"Stream #1(Compute)": kernels(10, 9)}))
    case = analyse(write(tmp_path, good, b"not a trace"))
    assert case.devices[0].busy_ms == pytest.approx(45)
    assert case.notes[0].level == "error"
    with pytest.raises(TraceUnreadable, match="None of the 2 files"):
        analyse(write(tmp_path, b"x", b"y"))


def test_memory_at_the_peak(tmp_path: Path) -> None:
    def allocation(at: float, address: int, size: int, in_use: int, op: str, freed: bool = False) -> Event:
        stats = {
            "allocator_name": Reference("GPU_0_bfc"), "bytes_allocated": in_use, "allocation_bytes": size,
            "addr": address, "peak_bytes_in_use": 5000, "bytes_available": 9000 - in_use,
            "tf_op": Reference(op),
        }  # fmt: skip
        return ("MemoryDeallocation" if freed else "MemoryAllocation", at, 0, stats)

    events = [
        allocation(1, 16, 500, 1500, "conv"), allocation(2, 32, 300, 1800, "dense"),
        allocation(3, 32, 300, 1500, "", freed=True), allocation(4, 48, 2000, 3500, "loss"),
        allocation(5, 48, 2000, 1500, "", freed=True),
    ]  # fmt: skip
    memory = analyse(write(tmp_path, space(plane("/host:CPU", {"main": events})))).memory
    assert memory is not None
    assert (memory.peak_bytes, memory.process_peak_bytes, memory.limit_bytes) == (3500, 5000, 9000)
    assert [(use.op, use.bytes) for use in memory.by_op] == [
        ("loss", 2000), ("(allocated before the trace began)", 1000), ("conv", 500),
    ]  # fmt: skip
    assert [size for _, size in memory.timeline] == [1500, 1800, 1500, 3500, 1500]


def test_a_long_memory_timeline_is_thinned_but_keeps_its_peak(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    sizes = generator.integers(1, 1000, 9000).tolist()
    sizes[4321] = 123456
    events = [
        ("MemoryAllocation", n, 0, {"allocator_name": "cpu", "bytes_allocated": size, "addr": n})
        for n, size in enumerate(sizes)
    ]
    memory = analyse(write(tmp_path, space(plane("/host:CPU", {"main": events})))).memory
    assert memory is not None
    assert len(memory.timeline) <= 2000
    assert max(size for _, size in memory.timeline) == 123456


def test_a_trace_without_events_says_so(tmp_path: Path) -> None:
    case = analyse(write(tmp_path, space(plane("/host:CPU", {}))))
    assert "No verdict" in case.verdict
    assert "no events" in case.notes[0].text
