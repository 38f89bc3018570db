"""The host side of a trace: the busy threads, the ops on the CPU, and what the host does while devices wait."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flatout.model.case import Device, DeviceDetail, Kernel, Op
from flatout.trace.device import TOP_KERNELS, TOP_OPS, _stem
from flatout.trace.intervals import Times, covered, gaps, innermost, merge, self_times
from flatout.trace.model import Line, Trace

EAGER = "EagerLocalExecute: "
OP_EVENT = re.compile(
    r"^(?!ThenExecuteCallback:)[^\s:$]+:(?!Iterator)_?[A-Z]\w*$|^EagerLocalExecute: (?!__|Iterator|Optional)"
)
"""TensorFlow names its op events "name:OpType"; other events have spaces, "::" or no colon. An eager op runs
inside its `EagerLocalExecute`. Taking an element from an iterator is waiting, not work."""

SAMPLES = 2000


@dataclass(frozen=True)
class Thread:
    """One host thread over the window."""

    name: str
    events: int
    busy_ms: float
    busy_share: float


def host_lines(trace: Trace) -> list[Line]:
    return [line for plane in trace.planes_like("/host:") for line in plane.lines if len(line)]


def span(lines: list[Line]) -> tuple[int, int] | None:
    if not lines:
        return None
    return (
        min(int(line.start_ps.min()) for line in lines),
        max(int((line.start_ps + line.duration_ps).max()) for line in lines),
    )


def threads(lines: list[Line], window: tuple[int, int], top: int = 8) -> list[Thread]:
    """The busiest threads: time inside any event, within the window."""
    low, high = window
    found = []
    for line in lines:
        start = np.clip(line.start_ps, low, high)
        end = np.clip(line.start_ps + line.duration_ps, low, high)
        busy = covered(start, end)
        share = busy / (high - low) if high > low else 0.0
        found.append(Thread(line.display_name or str(line.id), len(line), busy / 1e9, share))
    return sorted(found, key=lambda thread: -thread.busy_ms)[:top]


def doing_while_idle(
    lines: list[Line], busy: tuple[Times, Times], window: tuple[int, int], top: int = 8
) -> list[tuple[str, str, float]]:
    """(thread, innermost event, share of the device's idle time), by sampling the idle time evenly."""
    start, end = gaps(busy, *window)
    total = int((end - start).sum())
    if not total:
        return []
    # Evenly spaced instants of the idle time, mapped to the gaps.
    at = (np.arange(SAMPLES) + 0.5) / SAMPLES * total
    until = np.cumsum(end - start)
    position = np.searchsorted(until, at)
    points = (end[position] - (until[position] - at)).astype(np.int64)
    found: list[tuple[str, str, float]] = []
    for line in lines:
        index = innermost(points, line.start_ps, line.start_ps + line.duration_ps)
        hit = index[index >= 0]
        if not hit.size:
            continue
        ids, counts = np.unique(line.name_id[hit], return_counts=True)
        for name_id, count in zip(ids.tolist(), counts.tolist(), strict=True):
            found.append((line.display_name, line.plane.name_of(name_id), count / SAMPLES))
    return sorted(found, key=lambda item: -item[2])[:top]


@dataclass(frozen=True)
class CpuOps:
    start: Times
    end: Times
    own: Times
    code: NDArray[np.int64]
    names: list[tuple[str, str]]


def cpu_ops(lines: list[Line], window: tuple[int, int]) -> CpuOps:
    """Op events of TensorFlow's executors and of XLA on the CPU that begin in the window, from all threads."""
    known: dict[tuple[str, str], int] = {}
    parts: list[tuple[NDArray[np.int64], ...]] = []
    for line in lines:
        rows = line.where(lambda name: bool(OP_EVENT.match(name)))
        compiled = np.zeros(0, np.int64)
        if line.has_stat("hlo_op"):
            codes, _ = line.stat_strings("hlo_op")
            compiled = np.flatnonzero(codes >= 0).astype(np.int64)
        rows = np.union1d(rows, compiled)
        begin = line.start_ps[rows]
        rows = rows[(begin >= window[0]) & (begin < window[1])]
        if not rows.size:
            continue
        start = line.start_ps[rows]
        end = start + line.duration_ps[rows]
        ids, inverse = np.unique(line.name_id[rows], return_inverse=True)
        table = []
        for name_id in ids.tolist():
            name = line.plane.name_of(name_id)
            if name.startswith(EAGER):
                name = f"{name.removeprefix(EAGER)}:{name.removeprefix(EAGER)}"
            before, _, kind = name.rpartition(":")
            table.append(known.setdefault((before, kind) if before else (name, _stem(name)), len(known)))
        parts.append((start, end, self_times(start, end), np.array(table, np.int64)[inverse]))
    if not parts:
        nothing = np.zeros(0, np.int64)
        return CpuOps(nothing, nothing, nothing, nothing, [])
    start, end, own, code = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return CpuOps(start, end, own, code, list(known))


def describe_cpu(ops: CpuOps, host: str, window: tuple[int, int]) -> Device:
    """The CPU as a device: busy while at least one op runs on any thread."""
    busy = covered(np.clip(ops.start, *window), np.clip(ops.end, *window))
    length = window[1] - window[0]
    kinds = sorted({kind for _, kind in ops.names})
    position = {kind: index for index, kind in enumerate(kinds)}
    table = np.array([position[kind] for _, kind in ops.names] or [0], np.int64)
    code = table[ops.code]
    spent = np.bincount(code, weights=ops.own.astype(np.float64), minlength=len(kinds))
    counts = np.bincount(code, minlength=len(kinds))
    whole = float(spent.sum()) or 1.0
    chosen = [int(i) for i in np.argsort(-spent)[:TOP_KERNELS] if counts[i]]
    work = float(ops.own.sum()) / 1e9
    return Device(
        name="CPU",
        kind="cpu",
        host=host,
        window_ms=length / 1e9,
        busy_ms=busy / 1e9,
        busy_share=busy / length if length else 0.0,
        kernels=tuple(Kernel(kinds[i], int(counts[i]), float(spent[i]) / 1e9, float(spent[i]) / whole) for i in chosen),
        detail=DeviceDetail(op_ms=work, mean_parallel_ops=work / (busy / 1e9) if busy else 0.0),
    )


def ops_on_cpu(ops: CpuOps, steps: int) -> tuple[Op, ...]:
    if not ops.names:
        return ()
    spent = np.bincount(ops.code, weights=ops.own.astype(np.float64), minlength=len(ops.names))
    counts = np.bincount(ops.code, minlength=len(ops.names))
    whole = float(spent.sum()) or 1.0
    divisor = max(steps, 1)
    return tuple(
        Op(
            name=ops.names[i][0],
            type=ops.names[i][1],
            device="CPU",
            self_ms=float(spent[i]) / 1e9 / divisor,
            share=float(spent[i]) / whole,
            count=float(counts[i]) / divisor,
        )
        for i in (int(position) for position in np.argsort(-spent)[:TOP_OPS])
        if spent[i] > 0
    )


def busy_of(ops: CpuOps) -> tuple[Times, Times]:
    return merge(ops.start, ops.end)
