"""Splits each marked step of a TensorFlow trace into input, tracing, Python, compute, copies and idle time.

The marks are the `train` events with a `step_num` that the observing child writes (or the user's own). Every moment of
a step belongs to one part, by this order: an op computes; data is copied to or from a device; the step waits for its
input; a function is traced, or compiled by XLA; the runtime is inside a call and nothing of that happens (idle); else
Python runs. On a machine with accelerators "an op computes" means on the accelerator.

Threads of tf.data work ahead of the step: what runs there is the pipeline's, not the step's, except where the step
itself runs inside a pipeline (`for x in dataset` in a tf.function becomes a dataset scan).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from flatout.trace.intervals import Intervals, Times, self_times
from flatout.trace.model import Line, Plane, Trace

OP = re.compile(r"^[^\s:]+:[A-Za-z_]\w*$")
WRAPPERS = {
    "StatefulPartitionedCall", "PartitionedCall", "While", "StatelessWhile", "If", "StatelessIf", "Case",
    "_While", "_If", "IteratorGetNext", "IteratorGetNextAsOptional", "IteratorGetNextSync", "ReduceDataset",
    "RemoteCall", "_Recv", "_HostRecv", "OptionalGetValue", "ScanDataset", "SymbolicGradient", "LoopCond",
    "Enter", "Exit", "NextIteration", "Switch", "Merge", "MultiDeviceIteratorGetNextFromShard",
}  # fmt: skip
"""Ops that only wait for or route other ops: their time belongs to those."""
PYTHON_OPS = ("PyFunc", "PyFuncStateless", "EagerPyFunc")
CALLED = re.compile(r"^__(inference|forward|backward)_")
"""The type of the op that runs a whole function under XLA. The ops inside have events of their own."""
FUNCTION = re.compile(r"^EagerLocalExecute: __(inference|forward|backward)_")
INPUT_OPS = re.compile(
    r"^(IteratorGetNext\w*Op::DoCompute|EagerLocalExecute: (IteratorGetNext\w*|MakeIterator|AnonymousIterator\w*"
    r"|OptionalGetValue|OptionalHasValue)|[^\s:]+:MultiDeviceIteratorGetNextFromShard)$"
)
COLLECTIVE = re.compile(r":(Collective(Reduce|Gather|Bcast|AllToAll|Permute)\w*|Nccl\w*)$")
"""Ops that wait for other ranks, or exchange values with them."""
REDUCE_INPUT = re.compile(r"^ReduceIterator::(?:\w+::)*?Scan::\w+$")
KERNEL_RUN = re.compile(r"^KernelAndDevice\w*::Run$")
COMPILED = re.compile(r"^(CpuExecutable::Execute\w*|ThunkExecutor::Execute|PjRtStreamExecutor\w*::Execute\w*)$")
"""XLA runs a whole cluster in one such event. The ops inside have HLO names."""
COMPILING = re.compile(r"Compiler::RunBackend$|^XlaCompile")
"""XLA generates machine code for a cluster. The events of what precedes it (lowering, HLO passes) have many names."""
TRACING = "tf.function-graph_building"
COPIES = re.compile(r"memcpy|MemcpyH2D|MemcpyD2H|MemcpyP2P", re.IGNORECASE)


@dataclass(frozen=True)
class OpTime:
    name: str
    type: str
    seconds: float
    count: int
    device: str = ""
    eager: bool = False


@dataclass(frozen=True)
class StageTime:
    """One `Iterator::…` name: inclusive time on its own threads, and the number of elements it produced."""

    path: str
    seconds: float
    self_seconds: float
    count: int


@dataclass(frozen=True)
class StepSplit:
    start: Times
    """Picoseconds in the trace's clock."""
    end: Times
    steps: NDArray[np.int64]
    """How many steps each marked span holds."""
    parts: dict[str, Times] = field(default_factory=dict)
    """Picoseconds of each part in each span."""
    executing: Times = field(default_factory=lambda: np.zeros(0, np.int64))
    """The part of the idle time in which the executor goes from one small op to the next: traces omit cheap ops."""
    compiling: Times = field(default_factory=lambda: np.zeros(0, np.int64))
    """The part of the tracing that is spent in calls in which XLA compiles, and the number of compilations."""
    compiles: int = 0
    collective: Times = field(default_factory=lambda: np.zeros(0, np.int64))
    """The part of the computing in which nothing but collectives runs: other ranks are waited for, or values exchanged.
    """
    numbers: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Of each marked span, the number of its first step."""
    contended: Times = field(default_factory=lambda: np.zeros(0, np.int64))
    """The part of the Python time in which the pipeline ran Python too: both need the interpreter's lock."""
    ops: tuple[OpTime, ...] = ()
    pipeline_ops: tuple[OpTime, ...] = ()
    stages: tuple[StageTime, ...] = ()
    events: int = 0

    @property
    def count(self) -> int:
        return int(self.steps.sum())

    @property
    def usual(self) -> NDArray[np.bool_]:
        """The spans that contain steps only: not those with the end of an epoch, a validation, a checkpoint."""
        span = (self.end - self.start) / self.steps
        usual: NDArray[np.bool_] = span <= 3 * np.median(span)
        return usual if usual.mean() >= 0.7 else np.ones(len(span), bool)


def split_steps(trace: Trace, pipeline_op_names: Collection[str] = ()) -> StepSplit | None:
    """None if the trace has no step marks."""
    host = next((plane for plane in trace.planes if plane.name == "/host:CPU"), None)
    if host is None:
        return None
    marks = _marks(host)
    if marks is None:
        return None
    main, start, end, steps, numbers = marks
    spans = (start, end)
    lines = [line for line in host.lines if len(line)]
    reducing = any(_any(line, lambda name: name.startswith("ReduceIterator::")) for line in lines)
    ops, pipeline_ops = _op_events(host, lines, set(pipeline_op_names) if reducing else None)
    functions = _of(main, lambda name: bool(FUNCTION.match(name)))
    waits = [_times(line, line.where(lambda name: bool(INPUT_OPS.match(name)))) for line in lines]
    if reducing:
        waits += [_times(line, line.where(lambda name: bool(REDUCE_INPUT.match(name)))) for line in lines]
    waiting = Intervals.union(waits)
    eager = _eager_kernels(main, functions, waiting)
    devices, copying = _devices(trace)
    compiled = [_times(line, line.where(lambda name: bool(COMPILED.match(name)))) for line in lines]
    host_compute = Intervals.union([*(_times(line, index) for line, index in ops), *eager, *compiled])
    computing = devices if devices is not None else host_compute
    compiled_at = Intervals.union(_times(line, line.where(lambda name: bool(COMPILING.search(name)))) for line in lines)
    compiling = functions.holding(compiled_at.start)
    tracing = _of(main, lambda name: name == TRACING).joined(compiling)
    calling = functions.joined(_of(main, lambda name: name == "SessionRun"))

    parts: dict[str, Times] = {}
    covered = Intervals.union([])
    executing = np.zeros(len(start), np.int64)
    already = np.zeros(len(start), np.int64)
    for name, layer in (
        ("compute", computing), ("copy", copying), ("input", waiting), ("trace", tracing), ("idle", calling),
    ):  # fmt: skip
        if name == "idle":
            executing = covered.joined(_executor(lines)).within(*spans) - already
        covered = covered.joined(layer)
        reached = covered.within(*spans)
        parts[name] = reached - already
        already = reached
    parts["python"] = (end - start) - already
    contended = covered.joined(_python(pipeline_ops)).within(*spans) - already
    inside = Intervals(start, end)
    return StepSplit(
        start=start,
        end=end,
        steps=steps,
        parts=parts,
        executing=np.minimum(executing, parts["idle"]),
        compiling=np.minimum(compiling.within(*spans), parts["trace"]),
        compiles=int(Intervals(start, end).contains(compiled_at.start).sum()),
        collective=_alone(ops, spans),
        numbers=numbers,
        contended=contended,
        ops=(*_op_times(ops, inside), *_eager_times(main, functions, waiting, inside), *_hlo_times(lines, inside)),
        pipeline_ops=_op_times(pipeline_ops, Intervals(start[:1], end[-1:])),
        stages=_stages(lines, Intervals(start[:1], end[-1:])),
        events=trace.event_count,
    )


LineEvents = list[tuple[Line, NDArray[np.int64]]]
"""Lines, each with the indices of some of its events."""


def _op_events(host: Plane, lines: list[Line], pipeline_op_names: set[str] | None) -> tuple[LineEvents, LineEvents]:
    """The ops of the step and those of the pipeline.

    On threads of tf.data all ops are the pipeline's, unless the step itself runs inside a pipeline: then the names of
    the pipeline's ops are given.
    """
    ops: LineEvents = []
    pipeline_ops: LineEvents = []
    for line in lines:
        index = line.where(_is_op)
        if not len(index):
            continue
        if not line.display_name.startswith("tf_data"):
            ops.append((line, index))
        elif pipeline_op_names is None:
            pipeline_ops.append((line, index))
        else:
            known = np.array([_node(name) in pipeline_op_names for name in host.names(line.name_id[index])])
            ops.append((line, index[~known]))
            pipeline_ops.append((line, index[known]))
    return ops, pipeline_ops


def _alone(ops: LineEvents, spans: tuple[Times, Times]) -> Times:
    """Of each span, the time in which collectives run and no other op does."""
    shared = [
        (line, np.intersect1d(index, line.where(lambda name: bool(COLLECTIVE.search(name))))) for line, index in ops
    ]
    if not any(len(index) for _, index in shared):
        return np.zeros(len(spans[0]), np.int64)
    pairs = zip(ops, shared, strict=True)
    others = Intervals.union(_times(line, np.setdiff1d(index, mine)) for (line, index), (_, mine) in pairs)
    together = others.joined(Intervals.union(_times(line, index) for line, index in shared))
    alone: Times = together.within(*spans) - others.within(*spans)
    return alone


def _marks(host: Plane) -> tuple[Line, Times, Times, Times, NDArray[np.int64]] | None:
    for line in host.lines:
        if not line.has_stat("step_num"):
            continue
        number = line.stat_floats("step_num")
        index = np.flatnonzero(~np.isnan(number) & np.isin(line.name_id, host.ids_where(lambda name: name == "train")))
        if len(index) < 2:
            continue
        index = index[np.argsort(line.start_ps[index])]
        number = number[index]
        steps = np.diff(number)
        # The last mark was opened when the window closed: it does not contain a whole step.
        at = line.start_ps[index]
        keep = (steps >= 1) & (steps < 100_000) & (at[1:] > at[:-1])
        start, end = at[:-1][keep], at[1:][keep]
        steps, first = steps[keep], number[:-1][keep]
        if len(start) >= 5:  # the first span contains the start-up of the profiler
            start, end, steps, first = start[1:], end[1:], steps[1:], first[1:]
        if len(start):
            return line, start, end, steps.astype(np.int64), first.astype(np.int64)
    return None


def _any(line: Line, wanted: object) -> bool:
    return len(line.where(wanted)) > 0  # type: ignore[arg-type]


def _of(line: Line, wanted: object) -> Intervals:
    return Intervals.union([_times(line, line.where(wanted))])  # type: ignore[arg-type]


def _times(line: Line, index: NDArray[np.int64]) -> tuple[Times, Times]:
    start = line.start_ps[index]
    return start, start + line.duration_ps[index]


@lru_cache(maxsize=200_000)
def _is_op(name: str) -> bool:
    kind = name.rpartition(":")[2]
    return bool(OP.match(name)) and kind not in WRAPPERS and not CALLED.match(kind)


def _node(name: str) -> str:
    return name.rpartition(":")[0]


def _eager_kernels(main: Line, functions: Intervals, waiting: Intervals) -> list[tuple[Times, Times]]:
    """Kernels that the main thread runs op by op. Inside a function call the ops of the function count instead."""
    start, end = _times(main, main.where(lambda name: bool(KERNEL_RUN.match(name))))
    middle = (start + end) // 2
    own = ~functions.contains(middle) & ~waiting.contains(middle)
    return [(start[own], end[own])]


def _devices(trace: Trace) -> tuple[Intervals | None, Intervals]:
    kernels, copies = [], []
    planes = [plane for plane in trace.planes if plane.name.startswith(("/device:GPU", "/device:TPU"))]
    for plane in planes:
        for line in plane.lines:
            if line.display_name in (
                "Steps",
                "XLA Modules",
                "Source code",
                "Framework Name Scope",
                "TensorFlow Name Scope",
            ):
                continue
            copying = line.where(lambda name: bool(COPIES.search(name)))
            rest = np.setdiff1d(np.arange(len(line)), copying)
            copies.append(_times(line, copying))
            kernels.append(_times(line, rest))
    return (Intervals.union(kernels) if planes else None), Intervals.union(copies)


def _executor(lines: list[Line]) -> Intervals:
    return Intervals.union(
        _times(line, line.where(lambda name: name == "ExecutorState::Process"))
        for line in lines
        if not line.display_name.startswith("tf_data")
    )


def _python(found: LineEvents) -> Intervals:
    """When ops that call back into Python run."""
    return Intervals.union(
        _times(line, np.intersect1d(index, line.where(lambda name: name.rpartition(":")[2] in PYTHON_OPS)))
        for line, index in found
    )


def _op_times(found: LineEvents, inside: Intervals) -> tuple[OpTime, ...]:
    totals: dict[str, list[float]] = {}
    for line, index in found:
        index = index[inside.contains(line.start_ps[index])]
        ids, inverse = np.unique(line.name_id[index], return_inverse=True)
        seconds = np.bincount(inverse, weights=line.duration_ps[index], minlength=len(ids)) / 1e12
        counts = np.bincount(inverse, minlength=len(ids))
        for key, value, count in zip(ids, seconds, counts, strict=True):
            row = totals.setdefault(line.plane.name_of(int(key)), [0.0, 0])
            row[0] += float(value)
            row[1] += int(count)
    rows = [OpTime(_node(name), name.rpartition(":")[2], row[0], int(row[1])) for name, row in totals.items()]
    return tuple(sorted(rows, key=lambda op: -op.seconds))


def _eager_times(main: Line, functions: Intervals, waiting: Intervals, inside: Intervals) -> list[OpTime]:
    """Ops that Python runs one by one, by type: the trace has no node names for them."""
    index = main.where(lambda name: name.startswith("EagerLocalExecute: ") and not FUNCTION.match(name))
    index = index[inside.contains(main.start_ps[index]) & ~functions.contains(main.start_ps[index])]
    totals: dict[str, list[float]] = {}
    for name, duration in zip(main.plane.names(main.name_id[index]), main.duration_ps[index], strict=True):
        kind = str(name).removeprefix("EagerLocalExecute: ")
        if INPUT_OPS.match(str(name)):
            continue
        row = totals.setdefault(kind, [0.0, 0])
        row[0] += float(duration) / 1e12
        row[1] += 1
    return [OpTime(kind, kind, row[0], int(row[1]), eager=True) for kind, row in totals.items()]


def _hlo_times(lines: list[Line], inside: Intervals) -> tuple[OpTime, ...]:
    """Ops that XLA compiled, by their HLO names."""
    totals: dict[str, list[float]] = {}
    for line in lines:
        if not line.has_stat("hlo_op"):
            continue
        codes, names = line.stat_strings("hlo_op")
        mine = (codes >= 0) & inside.contains(line.start_ps)
        seconds = np.bincount(codes[mine], weights=line.duration_ps[mine], minlength=len(names)) / 1e12
        counts = np.bincount(codes[mine], minlength=len(names))
        for name, value, count in zip(names, seconds, counts, strict=True):
            row = totals.setdefault(name, [0.0, 0])
            row[0] += float(value)
            row[1] += int(count)
    return tuple(OpTime(name, "XLA", row[0], int(row[1])) for name, row in totals.items() if row[1])


def _stages(lines: list[Line], inside: Intervals) -> tuple[StageTime, ...]:
    totals: dict[str, list[float]] = {}
    for line in lines:
        index = line.where(lambda name: name.startswith(("Iterator::", "ReduceIterator::")))
        index = index[inside.contains(line.start_ps[index])]
        if not len(index):
            continue
        start, end = _times(line, index)
        names = (str(name) for name in line.plane.names(line.name_id[index]))
        for name, whole, alone in zip(names, end - start, self_times(start, end), strict=True):
            row = totals.setdefault(name, [0.0, 0.0, 0])
            row[0] += float(whole)
            row[1] += float(alone)
            row[2] += 1
    rows = [StageTime(path, row[0] / 1e12, row[1] / 1e12, int(row[2])) for path, row in totals.items()]
    return tuple(sorted(rows, key=lambda stage: stage.path))
