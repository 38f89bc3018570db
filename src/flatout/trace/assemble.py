"""From trace files to a Case: what each device did, the steps, ops, memory, and what waited for what.

Only observations are made here. The causes interpret them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from flatout.model.case import Case, Device, Evidence, Memory, Note, Op, Program, Split, Steps
from flatout.model.errors import TraceUnreadable
from flatout.model.evidence.devices import HostThread, HostWhileDeviceIdle, MemoryPeak
from flatout.model.version import __version__
from flatout.trace import device as devices
from flatout.trace import host as hosts
from flatout.trace import steps as stepping
from flatout.trace.device import Executed
from flatout.trace.intervals import merge, overlap
from flatout.trace.memory import memory_of
from flatout.trace.model import Line, Plane, Trace
from flatout.trace.verdict import observe, stragglers, verdict_of
from flatout.trace.xplane import find_files, load

Progress = Callable[[str], None]


@dataclass(frozen=True)
class HostView:
    """What was read from the file of one host."""

    name: str
    devices: tuple[Device, ...]
    steps: Steps | None
    ops: tuple[Op, ...]
    memory: tuple[Memory, ...]
    evidence: tuple[Evidence, ...]
    notes: tuple[Note, ...]
    work_ms: float | None
    """Time per step that the devices computed, without waiting for other devices."""
    environment: dict[str, object]


def analyse(paths: str | Path | Iterable[str | Path], all_runs: bool = False, progress: Progress | None = None) -> Case:
    """Read the traces of all hosts and put together one Case of kind "trace".

    A file that cannot be read is noted while others can; TraceUnreadable is raised when none can.
    """
    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    files = find_files(given, all_runs)
    views: list[HostView] = []
    notes: list[Note] = []
    for number, file in enumerate(files, 1):
        if progress:
            progress(f"reading {file.name} ({number} of {len(files)}, {file.stat().st_size / 1e6:.1f} MB)")
        try:
            trace = load(file)
        except TraceUnreadable as error:
            if len(files) == 1:
                raise
            notes.append(Note("error", str(error), "The other hosts' traces were read."))
            continue
        if progress:
            progress(f"analysing {trace.event_count:,} events of {trace.hostname}")
        views.append(view_of(trace, _host_name(trace, file, [view.name for view in views])))
    if not views:
        raise TraceUnreadable(f"None of the {len(files)} files can be read as a trace. First error: {notes[0].text}")
    return _join(views, files, notes)


def _host_name(trace: Trace, file: Path, taken: list[str]) -> str:
    """The name of the host, or of the file if several files have the same host."""
    name = trace.hostname
    if name and name not in taken:
        return name
    stem = file.name.split(".xplane.pb")[0]
    return stem if stem not in taken else f"{stem} ({len(taken) + 1})"


def view_of(trace: Trace, name: str) -> HostView:
    """Analyse one host's trace."""
    found = stepping.find(trace)
    steps = found.to_steps() if found else None
    count = steps.count if steps else 0
    lines = hosts.host_lines(trace)
    accelerators = _planes(trace)
    used = accelerators_of(trace, name, count)
    evidence: list[Evidence] = []
    work_ms = None
    if used is not None:
        window, described, ops = used.window, used.devices, used.ops
        busiest = max(range(len(described)), key=lambda index: described[index].busy_ms)
        steps = _split(steps, found, used.executed[busiest])
        work_ms = _work(described[busiest], count)
        idle = hosts.doing_while_idle(lines, devices.busy_intervals(used.executed[busiest]), window)
    else:
        window = _cpu_window(found, lines)
        on_cpu = hosts.cpu_ops(lines, window)
        described = (hosts.describe_cpu(on_cpu, name, window), *_idle_devices(accelerators, name, window))
        ops = hosts.ops_on_cpu(on_cpu, count)
        idle = hosts.doing_while_idle(lines, hosts.busy_of(on_cpu), window) if on_cpu.names else []
    evidence += observe(described, steps, name)
    for thread in hosts.threads(lines, window):
        evidence.append(HostThread(thread.busy_ms, thread.events, thread.busy_share, source=name, note=thread.name))
    for thread_name, event, share in idle:
        evidence.append(HostWhileDeviceIdle(share, thread_name, source=name, note=event))
    notes = [Note("warning", text) for text in trace.warnings]
    if not trace.event_count:
        notes.append(Note("warning", f"The trace of {name} has no events.", "Record while the program runs its steps."))
    elif steps is None:
        notes.append(
            Note("info", f"No steps were found in the trace of {name}; times are of the whole window.",
                 "Mark steps with tf.profiler.experimental.Trace('train', step_num=n, _r=1).")
        )  # fmt: skip
    return HostView(
        name, described, steps, ops, memory_of(lines, window[0]), tuple(evidence), tuple(notes), work_ms,
        _environment(trace),
    )  # fmt: skip


@dataclass(frozen=True)
class Accelerators:
    """What GPUs and the like did in a trace."""

    devices: tuple[Device, ...]
    ops: tuple[Op, ...]
    executed: tuple[Executed, ...]
    window: tuple[int, int]


def accelerators_of(trace: Trace, host: str, steps: int) -> Accelerators | None:
    """None where none did anything. `steps`: how many the trace holds."""
    planes = _planes(trace)
    done = tuple(devices.executed(plane) for plane in planes)
    spans = [span for executed in done if (span := executed.span)]
    if not spans:
        return None
    window = min(span[0] for span in spans), max(span[1] for span in spans)
    described = tuple(
        devices.describe(plane, host, executed, window) for plane, executed in zip(planes, done, strict=True)
    )
    ops = tuple(
        op
        for executed, device in zip(done, described, strict=True)
        for op in devices.ops_of(executed, device.name, steps)
    )
    return Accelerators(described, ops, done, window)


def _planes(trace: Trace) -> list[Plane]:
    return [plane for plane in trace.planes_like("/device:") if _is_accelerator(plane)]


def _is_accelerator(plane: Plane) -> bool:
    return not plane.name.startswith("/device:CUSTOM") and "CPU" not in plane.name


def _idle_devices(planes: list[Plane], host: str, window: tuple[int, int]) -> tuple[Device, ...]:
    return tuple(devices.describe(plane, host, devices.executed(plane), window) for plane in planes)


def _cpu_window(found: stepping.Found | None, lines: list[Line]) -> tuple[int, int]:
    """Of a CPU trace: from the first step to the end of the last, else everything that was recorded."""
    if found is not None:
        return int(found.starts_ps[0]), found.end_ps
    return hosts.span(lines) or (0, 0)


def _split(steps: Steps | None, found: stepping.Found | None, executed: devices.Executed) -> Steps | None:
    """The median step by what the device did in it. It waited for the rest of the step."""
    if steps is None or found is None or found.starts_ps.size < 2:
        return steps
    kinds = devices.kinds_of(executed)
    copying = np.array([bool(kind.copy) and kind.copy != "memset" for kind in kinds], bool)[executed.code]
    low, high = found.starts_ps[:-1], found.starts_ps[1:]
    computing = merge(executed.start[~copying], executed.end[~copying])
    compute = float(np.median(overlap(computing, low, high))) / 1e9
    busy = float(np.median(overlap(devices.busy_intervals(executed), low, high))) / 1e9
    compute = min(compute, steps.ms.median)
    copy = min(max(busy - compute, 0.0), steps.ms.median - compute)
    split = Split(compute=compute, copy=copy, idle=steps.ms.median - compute - copy)
    return replace(steps, split_ms=split, split_from="the device's own events between two starts of a step")


def _work(device: Device, steps: int) -> float | None:
    """Computing time per step without collectives, in which a fast host waits for a slow one."""
    if not steps:
        return None
    return ((device.detail.compute_ms or 0.0) - (device.detail.collective_ms or 0.0)) / steps


def _environment(trace: Trace) -> dict[str, object]:
    facts: dict[str, object] = {}
    for name in ("Task Environment", "/host:metadata"):
        plane = trace.plane(name)
        if plane is not None:
            facts.update({key: value for key, value in plane.stats.items() if isinstance(value, (str, int, float))})
    return facts


def _join(views: list[HostView], files: list[Path], notes: list[Note]) -> Case:
    host_entries, straggling = stragglers([(view.name, view.steps, view.work_ms) for view in views])
    main = max(views, key=lambda view: view.steps.count if view.steps else 0)
    all_devices = tuple(device for view in views for device in view.devices)
    memories = sorted((item for view in views for item in view.memory), key=lambda item: -item.peak_bytes)
    evidence = [item for view in views for item in view.evidence]
    for other in memories[1:]:
        evidence.append(MemoryPeak(other.peak_bytes, other.process_peak_bytes, note=other.allocator))
    environment: dict[str, object] = {"hosts": {view.name: view.environment for view in views}}
    return Case(
        kind="trace",
        program=Program(command=("trace", *(str(file) for file in files))),
        environment=environment,
        steps=main.steps,
        ops=main.ops,
        memory=memories[0] if memories else None,
        devices=all_devices,
        hosts=host_entries,
        evidence=(*evidence, *straggling),
        verdict=verdict_of(all_devices, main.steps, host_entries),
        notes=(*notes, *(note for view in views for note in view.notes)),
        flatout=__version__,
    )
