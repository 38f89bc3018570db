"""A recording becomes a Case: steps and their split, functions, pipelines, ops, memory, evidence, notes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flatout.model.case import (
    Case,
    Memory,
    Note,
    Placement,
    Program,
    RunTree,
)
from flatout.model.errors import FlatoutError
from flatout.model.version import __version__
from flatout.observe.reading import evidence, functions, job, notes, ops, pipelines, run_tree, step_summary, steps
from flatout.observe.reading.graphs import Graphs
from flatout.observe.reading.recording import Recording, load
from flatout.trace.assemble import accelerators_of
from flatout.trace.host_steps import split_steps
from flatout.trace.memory import memory_of
from flatout.trace.model import Trace
from flatout.trace.xplane import load as load_trace


def assemble(directory: Path, program: Program, describe: Callable[[dict[str, Any]], dict[str, Any]]) -> Case:
    """The case of a run, as complete as its recording: a program may end early, or be killed.

    `describe` makes the environment from what TensorFlow reported about itself in the program.
    """
    recording = load(directory)
    environment = describe(recording.last("tensorflow"))
    lost: list[Note] = []
    program = _program(recording, program)
    graphs = Graphs(recording)
    streams = steps.streams(recording)
    stream = steps.choose(streams)
    measured = steps.measure(recording, stream) if stream is not None else None
    window = _window(recording, stream.id if stream else None)
    trace = _trace(directory, window, lost)
    split = split_steps(trace, graphs.pipeline_op_names) if trace is not None else None
    used = accelerators_of(trace, "", split.count if split is not None else 0) if trace is not None else None
    found_steps = step_summary.summarize(recording, measured, split, window) if measured is not None else None
    found_pipelines = pipelines.read(recording, split, measured)
    found_ops = (*ops.on_devices(used, graphs), *ops.read(split, graphs))
    found_evidence = (
        *evidence.read(recording, measured, split, graphs),
        *job.read(recording, measured, split, found_ops, found_pipelines),
    )
    return Case(
        kind="run",
        flatout=__version__,
        program=program,
        environment={
            **environment,
            "tensorflow": recording.last("tensorflow"),
            **_versions(recording),
        },
        run=_run(recording, stream, streams, measured, lost),
        steps=found_steps,
        functions=functions.read(recording),
        pipelines=found_pipelines,
        ops=found_ops,
        memory=_memory(recording, trace, graphs, _memory_limit(environment)),
        placement=_placement(recording, graphs),
        devices=used.devices if used is not None else (),
        evidence=found_evidence,
        notes=(*lost, *notes.read(recording, measured, split, program), *notes.on_other_processes(found_evidence)),
        logdir="trace" if window.get("path") else None,
    )


def _program(recording: Recording, program: Program) -> Program:
    failure = recording.last("exception")
    if not failure:
        return program
    text = f"{failure['type']}: {failure['text']}" if failure["text"] else failure["type"]
    where = failure.get("where")
    return dataclasses.replace(program, error=text + (f" ({where[0]}:{where[1]})" if where else ""))


def _run(
    recording: Recording, stream: steps.Stream | None, found: list[steps.Stream], measured: Any, lost: list[Note]
) -> RunTree | None:
    try:
        return run_tree.read(recording, stream, found, measured)
    except Exception as error:  # a recording that was cut short, or is damaged: the steps are still worth a case
        lost.append(Note("warning", f"The tree of the run cannot be read: {type(error).__name__}: {error}"))
        return None


def _window(recording: Recording, stream: int | None) -> dict[str, Any]:
    """The window over the chosen stream, or else the last one."""
    closed = [fact for fact in recording.all("window-close") if fact.get("path")]
    fitting = [fact for fact in closed if fact.get("stream") == stream]
    return (fitting or closed or [{}])[-1]


def _trace(directory: Path, window: dict[str, Any], lost: list[Note]) -> Trace | None:
    if not window.get("path"):
        return None
    try:
        return load_trace(directory / window["path"])
    except (FlatoutError, OSError) as error:
        lost.append(Note("warning", f"The trace of this run cannot be read: {error}"))
        return None


def _memory(recording: Recording, trace: Trace | None, graphs: Graphs, limit: int) -> Memory | None:
    rows = recording.last("resources").get("rows") or []
    peak = max((int(row[1]) for row in rows), default=0)
    lines = [line for plane in trace.planes for line in plane.lines] if trace is not None else []
    found = max(memory_of(lines, 0), key=lambda memory: memory.peak_bytes, default=None)
    if found is None:
        return Memory(peak, process_peak_bytes=peak, limit_bytes=limit, allocator="process") if peak else None
    used = tuple(dataclasses.replace(use, where=use.where or graphs.where(use.op)) for use in found.by_op)
    return dataclasses.replace(found, by_op=used, process_peak_bytes=peak, limit_bytes=limit)


def _memory_limit(environment: dict[str, Any]) -> int:
    memory = environment.get("memory") or {}
    return int(memory.get("limit") or memory.get("total") or 0)


def _placement(recording: Recording, graphs: Graphs) -> Placement:
    devices = recording.last("tensorflow").get("devices") or []
    return Placement(devices=tuple(devices), by_device=graphs.requested_devices(), fallbacks=graphs.fallbacks(devices))


def _versions(recording: Recording) -> dict[str, Any]:
    start = recording.last("start")
    found: dict[str, Any] = {"python": start.get("python")}
    for fact in recording.all("import"):
        found[f"{fact['package']}_version"] = fact.get("version")
        found[f"{fact['package']}_import_seconds"] = round(fact.get("seconds", 0.0), 2)
    return found
