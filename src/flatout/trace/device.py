"""One accelerator of a trace: busy and idle time, kernels, copies, tensor cores, ops.

**Busy** is the exact union of everything the device executes: kernels, copies, memsets of all its streams.
**The window** reaches from the first to the last thing that any accelerator of the host executed. It is not
the whole recording, because starting and stopping the profiler takes tens to hundreds of milliseconds when
the program does not run; nor is it one device's own activity, so that of two devices the one with less to do
shows it. A device that executed nothing in the window is 0 % busy.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from flatout.model.case import Copy, Device, DeviceDetail, Kernel, Op
from flatout.model.vocabulary import DeviceKind
from flatout.trace.intervals import Times, covered, merge, self_times
from flatout.trace.kernels import KernelKind, classify, copied_bytes
from flatout.trace.model import Line, Plane

TOP_KERNELS = 60
TOP_OPS = 100

DERIVED = (
    "Steps", "XLA Modules", "XLA TraceMe", "Framework Name Scope", "Framework Ops", "TensorFlow Name Scope",
    "TensorFlow Ops", "Source code", "Source", "Launch Stats", "Sparse Core Steps", "Async XLA Ops",
)  # fmt: skip
"""Lines that group or repeat other lines: adding them would count the same time twice."""


def device_lines(plane: Plane) -> list[Line]:
    """The lines of what the device itself executed, without repetitions."""
    streams = [line for line in plane.lines if line.name.startswith("Stream")]
    if streams:
        return streams
    ops = [line for line in plane.lines if line.name == "XLA Ops" and len(line)]
    if ops:
        return ops
    return [line for line in plane.lines if line.name not in DERIVED]


@dataclass(frozen=True)
class Executed:
    """Everything that one device executed, from all lines."""

    name: NDArray[np.object_]
    """The distinct names; every other column has one entry per event."""
    code: NDArray[np.int64]
    """The index of each event in `name`."""
    start: Times
    end: Times
    own: Times
    """Time without nested events (a TPU's while loop contains its body)."""
    op: NDArray[np.int64]
    ops: list[str]
    op_types: list[str]
    occupancy: NDArray[np.float64]
    bytes: NDArray[np.int64]

    @property
    def span(self) -> tuple[int, int] | None:
        return (int(self.start.min()), int(self.end.max())) if self.start.size else None


def executed(plane: Plane) -> Executed:
    """Collect the events of a device plane as flat columns."""
    known_names: dict[str, int] = {}
    known_ops: dict[tuple[str, str], int] = {}
    columns: list[tuple[NDArray[np.int64], ...]] = []
    occupancies: list[NDArray[np.float64]] = []
    for line in device_lines(plane):
        if not len(line):
            continue
        ids, inverse = np.unique(line.name_id, return_inverse=True)
        names = (plane.name_of(int(i)) for i in ids)
        table = np.array([known_names.setdefault(name, len(known_names)) for name in names], np.int64)
        end = line.start_ps + line.duration_ps
        # A stream runs its kernels one after the other; kernels that overlap a little are still separate.
        nested = not line.name.startswith("Stream")
        columns.append(
            (
                table[inverse], line.start_ps, end,
                self_times(line.start_ps, end) if nested else line.duration_ps,
                _op_codes(line, known_ops), _sizes(line),
            )
        )  # fmt: skip
        occupancies.append(line.stat_floats("theoretical_occupancy_pct") / 100)
    if not columns:
        columns = [tuple(np.zeros(0, np.int64) for _ in range(6))]
        occupancies = [np.zeros(0)]
    code, start, end, own, op, size = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    return Executed(
        np.array(list(known_names), dtype=object), code, start, end, own, op,
        [name for name, _ in known_ops], [kind for _, kind in known_ops], np.concatenate(occupancies), size,
    )  # fmt: skip


def _sizes(line: Line) -> NDArray[np.int64]:
    """Bytes of copies, from their details or, on planes that have it, from `bytes_transferred`."""
    codes, details = line.stat_strings("memcpy_details")
    table = np.array([*(copied_bytes(text) for text in details), 0], np.int64)
    return table[codes]


def _op_codes(line: Line, known: dict[tuple[str, str], int]) -> NDArray[np.int64]:
    """The op of each event: the framework's name where the trace has one, else XLA's."""
    names, scope = line.stat_strings("name")
    tf_ops, tf_op = line.stat_strings("tf_op")
    hlo_ops, hlo_op = line.stat_strings("hlo_op")
    shared = [line.plane.metadata_stats(int(i)) for i in np.unique(line.name_id)] if not tf_op else []
    if not hlo_op and not tf_op and any(shared):
        return _shared_ops(line, known)
    width = max(len(scope), len(tf_op), len(hlo_op), 1) + 1
    key = ((names + 1) * width + tf_ops + 1) * width + hlo_ops + 1
    unique, inverse = np.unique(key, return_inverse=True)
    table = np.zeros(unique.size, np.int64)
    for position, value in enumerate(unique.tolist()):
        rest, hlo = divmod(value, width)
        named, tensorflow = divmod(rest, width)
        table[position] = _code(
            known,
            scope[named - 1] if named else "",
            tf_op[tensorflow - 1] if tensorflow else "",
            hlo_op[hlo - 1] if hlo else "",
        )
    return _graph_kernels(line, known, table[inverse])


def _graph_kernels(line: Line, known: dict[tuple[str, str], int], codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """A kernel of a CUDA graph has the graph ("command_buffer_12") as its op: its own name is more useful."""
    graphs = np.array([position for (op, _), position in known.items() if op.startswith("command_buffer")], np.int64)
    rows = np.flatnonzero(np.isin(codes, graphs))
    if not rows.size:
        return codes
    ids, inverse = np.unique(line.name_id[rows], return_inverse=True)
    names = [line.plane.name_of(int(i)) for i in ids]
    codes[rows] = np.array([known.setdefault((name, _stem(name)), len(known)) for name in names], np.int64)[inverse]
    return codes


def _shared_ops(line: Line, known: dict[tuple[str, str], int]) -> NDArray[np.int64]:
    """TPU planes keep `tf_op` and `hlo_category` with the name of the event, not with every event."""
    ids, inverse = np.unique(line.name_id, return_inverse=True)
    table = np.zeros(ids.size, np.int64)
    for position, name_id in enumerate(ids.tolist()):
        stats = line.plane.metadata_stats(name_id)
        metadata = line.plane.event_metadata.get(name_id)
        hlo = metadata.display_name or metadata.name if metadata else ""
        category = str(stats.get("hlo_category", ""))
        framework = str(stats.get("tf_op", ""))
        code = (framework.rpartition(":")[0] or framework or hlo, category or _stem(hlo))
        table[position] = known.setdefault(code, len(known))
    return table[inverse]


def _code(known: dict[tuple[str, str], int], scope: str, tf_op: str, hlo_op: str) -> int:
    name, _, kind = tf_op.rpartition(":")
    if tf_op and kind and name:
        found = (name, kind)
    elif scope:
        found = (scope, _stem(hlo_op) or scope.rpartition("/")[2])
    elif hlo_op:
        found = (hlo_op, _stem(hlo_op))
    else:
        found = ("", "")
    return known.setdefault(found, len(known))


def _stem(hlo_op: str) -> str:
    return re.sub(r"[._]\d+$", "", re.sub(r"[.]\d+$", "", hlo_op.lstrip("%").split(" ")[0]))


def kinds_of(done: Executed) -> list[KernelKind]:
    return [classify(str(name)) for name in done.name]


def describe(plane: Plane, host: str, done: Executed, window: tuple[int, int]) -> Device:
    """The case's entry for one device."""
    kinds = kinds_of(done)
    is_copy = _flags(kinds, lambda kind: bool(kind.copy) and kind.copy != "memset", done)
    tensor = _flags(kinds, lambda kind: kind.tensor_core, done)
    kernel = ~_flags(kinds, lambda kind: bool(kind.copy), done)
    collective = _flags(kinds, lambda kind: kind.collective, done)
    busy = covered(done.start, done.end)
    computing = covered(done.start[~is_copy], done.end[~is_copy])
    kernel_time = float(done.own[kernel].sum())
    length = window[1] - window[0]
    is_gpu = "GPU" in plane.name
    precision, shares = _precision(done, kinds)
    return Device(
        name=plane.name.removeprefix("/device:"),
        kind=_device_kind(plane),
        host=host,
        window_ms=length / 1e9,
        busy_ms=busy / 1e9,
        busy_share=busy / length if length else 0.0,
        kernels=_kernels(done, kinds, kernel, kernel_time),
        copies=_copies(done, kinds),
        tensor_core_share=float(done.own[tensor].sum()) / kernel_time if is_gpu and kernel_time else None,
        precision=precision,
        model=str(plane.stats.get("gpu_device_name") or plane.stats.get("device_type_string") or ""),
        detail=DeviceDetail(
            compute_ms=computing / 1e9,
            copy_only_ms=(busy - computing) / 1e9,
            kernel_ms=kernel_time / 1e9,
            kernels=int(kernel.sum()),
            matrix_ms=float(done.own[_flags(kinds, lambda kind: kind.matrix, done)].sum()) / 1e9,
            fused_ms=float(done.own[_flags(kinds, lambda kind: kind.fused, done)].sum()) / 1e9,
            collective_ms=float(done.own[collective].sum()) / 1e9,
            precision_shares=shares,
            streams={line.name: len(line) for line in device_lines(plane)},
            facts={key: value for key, value in plane.stats.items() if key in FACTS},
        ),
    )


def _device_kind(plane: Plane) -> DeviceKind:
    """Other accelerators than GPUs and TPUs keep the name of their plane."""
    word = "gpu" if "GPU" in plane.name else "tpu" if "TPU" in plane.name else plane.name.split(":")[1].lower()
    return cast(DeviceKind, word)


FACTS = (
    "memory_bandwidth", "memory_size", "core_count", "clock_rate", "compute_cap_major", "compute_cap_minor",
    "peak_teraflops_per_second", "peak_hbm_bw_gigabytes_per_second", "device_vendor",
)  # fmt: skip


def _flags(kinds: list[KernelKind], wanted: Callable[[KernelKind], bool], done: Executed) -> NDArray[np.bool_]:
    table = np.array([wanted(kind) for kind in kinds] or [False], bool)
    return table[done.code]


def _precision(done: Executed, kinds: list[KernelKind]) -> tuple[str, dict[str, float]]:
    """Precision of the matrix arithmetic by time. Kernels whose names do not show it are left out."""
    spent = np.bincount(done.code, weights=done.own.astype(np.float64), minlength=len(kinds))
    total: dict[str, float] = {}
    for kind, time in zip(kinds, spent, strict=False):
        if kind.matrix and kind.precision:
            total[kind.precision] = total.get(kind.precision, 0.0) + float(time)
    whole = sum(total.values())
    if not whole:
        return "", {}
    shares = {label: time / whole for label, time in sorted(total.items(), key=lambda item: -item[1])}
    return next(iter(shares)), shares


def _kernels(
    done: Executed, kinds: list[KernelKind], kernel: NDArray[np.bool_], kernel_time: float
) -> tuple[Kernel, ...]:
    if not kinds:
        return ()
    spent = np.bincount(done.code[kernel], weights=done.own[kernel].astype(np.float64), minlength=len(kinds))
    counts = np.bincount(done.code[kernel], minlength=len(kinds))
    known = ~np.isnan(done.occupancy) & kernel
    occupied = np.bincount(done.code[known], weights=done.occupancy[known], minlength=len(kinds))
    measured = np.bincount(done.code[known], minlength=len(kinds))
    main_op = _main_op(done)
    chosen = [int(i) for i in np.argsort(-spent)[:TOP_KERNELS] if counts[i]]
    return tuple(
        Kernel(
            name=str(done.name[i]),
            count=int(counts[i]),
            ms=float(spent[i]) / 1e9,
            share=float(spent[i]) / kernel_time if kernel_time else 0.0,
            tensor_core=kinds[i].tensor_core,
            op=main_op.get(i, ""),
            precision=kinds[i].precision,
            occupancy=float(occupied[i] / measured[i]) if measured[i] else None,
        )
        for i in chosen
    )


def _main_op(done: Executed) -> dict[int, str]:
    """For each kernel name, the op that spends most of its time."""
    width = len(done.ops) + 1
    pairs, inverse = np.unique(done.code * width + done.op, return_inverse=True)
    spent = np.bincount(inverse, weights=done.own.astype(np.float64))
    best: dict[int, tuple[float, str]] = {}
    for pair, time in zip(pairs.tolist(), spent.tolist(), strict=True):
        code, op = divmod(pair, width)
        if code not in best or time > best[code][0]:
            best[code] = time, done.ops[op]
    return {code: name for code, (_, name) in best.items()}


def _copies(done: Executed, kinds: list[KernelKind]) -> tuple[Copy, ...]:
    directions = np.array([kind.copy for kind in kinds] or [""], dtype=object)[done.code]
    found = []
    for direction in sorted({kind.copy for kind in kinds if kind.copy and kind.copy != "memset"}):
        mine = directions == direction
        time = covered(done.start[mine], done.end[mine])
        found.append(Copy(direction, int(mine.sum()), int(done.bytes[mine].sum()), time / 1e9))
    return tuple(sorted(found, key=lambda copy: -copy.ms))


def ops_of(done: Executed, device: str, steps: int) -> tuple[Op, ...]:
    """Time by op, per step; copies and memsets count for the op that requested them."""
    if not done.start.size:
        return ()
    spent = np.bincount(done.op, weights=done.own.astype(np.float64), minlength=len(done.ops))
    counts = np.bincount(done.op, minlength=len(done.ops))
    whole = float(spent.sum()) or 1.0
    order = [int(i) for i in np.argsort(-spent)[:TOP_OPS] if spent[i] > 0 and done.ops[int(i)]]
    divisor = max(steps, 1)
    return tuple(
        Op(
            name=done.ops[i],
            type=done.op_types[i],
            device=device,
            self_ms=float(spent[i]) / 1e9 / divisor,
            share=float(spent[i]) / whole,
            count=float(counts[i]) / divisor,
        )
        for i in order
    )


def busy_intervals(done: Executed) -> tuple[Times, Times]:
    return merge(done.start, done.end)
