"""A recording becomes a Case: steps and their split, functions, pipelines, ops, memory, evidence, notes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from flatout.measure.processors import STARVED, others_in
from flatout.model.case import (
    Case,
    Distribution,
    Evidence,
    Memory,
    Note,
    Placement,
    Program,
    Split,
    StepKind,
    Steps,
)
from flatout.model.errors import FlatoutError
from flatout.model.version import __version__
from flatout.model.vocabulary import StreamKind
from flatout.observe.reading import evidence, functions, ops, pipelines, steps
from flatout.observe.reading.graphs import Graphs
from flatout.observe.reading.recording import Recording, load
from flatout.source import context
from flatout.trace.host_steps import StepSplit, split_steps
from flatout.trace.memory import memory_of
from flatout.trace.model import Trace
from flatout.trace.xplane import load as load_trace

MOST_TIMES = 4000
OLDEST = (2, 16)
FOUND_BY: dict[StreamKind, str] = {
    "fit": "batches of Keras fit",
    "predict": "batches of Keras predict",
    "evaluate": "batches of Keras evaluate",
    "train-function": "calls of a tf.function that trains",
    "apply": "eager optimizer updates",
    "session": "Session.run",
    "tape": "eager gradient tapes",
    "function": "calls of a tf.function",
    "model": "eager calls of a model",
    "input": "elements taken from a dataset",
}
KIND: dict[StreamKind, StepKind] = {
    "fit": "train",
    "train-function": "train",
    "apply": "train",
    "tape": "train",
    "session": "session",
    "predict": "inference",
    "evaluate": "inference",
    "function": "inference",
    "model": "inference",
    "input": "input",
}


def assemble(directory: Path, program: Program, describe: Callable[[dict[str, Any]], dict[str, Any]]) -> Case:
    """Everything that can be told from a recording, however early it was cut short.

    `describe` gives the environment, knowing what TensorFlow said of itself in the program.
    """
    recording = load(directory)
    environment = describe(recording.last("tensorflow"))
    notes: list[Note] = []
    program = _program(recording, program)
    graphs = Graphs(recording)
    stream = steps.choose(steps.streams(recording))
    measured = steps.measure(recording, stream) if stream is not None else None
    window = _window(recording, stream.id if stream else None)
    trace = _trace(directory, window, notes)
    split = split_steps(trace, graphs.pipeline_op_names) if trace is not None else None
    found_steps = _steps(recording, measured, split, window) if measured is not None else None
    found_pipelines = pipelines.read(recording, split, measured)
    found_evidence = evidence.read(recording, measured, split, graphs)
    return Case(
        kind="run",
        flatout=__version__,
        program=program,
        environment={
            **environment,
            "tensorflow": recording.last("tensorflow"),
            **_versions(recording),
        },
        steps=found_steps,
        functions=functions.read(recording),
        pipelines=found_pipelines,
        ops=ops.read(split, graphs),
        memory=_memory(recording, trace, graphs, _memory_limit(environment)),
        placement=_placement(recording, graphs),
        evidence=found_evidence,
        notes=(*notes, *_notes(recording, measured, split, program), *_crowded(found_evidence)),
        logdir="trace" if window.get("path") else None,
    )


def _program(recording: Recording, program: Program) -> Program:
    failure = recording.last("exception")
    if not failure:
        return program
    text = f"{failure['type']}: {failure['text']}" if failure["text"] else failure["type"]
    where = failure.get("where")
    return dataclasses.replace(program, error=text + (f" ({where[0]}:{where[1]})" if where else ""))


def _window(recording: Recording, stream: int | None) -> dict[str, Any]:
    """The window over the chosen stream, or else the last one."""
    closed = [fact for fact in recording.all("window-close") if fact.get("path")]
    fitting = [fact for fact in closed if fact.get("stream") == stream]
    return (fitting or closed or [{}])[-1]


def _trace(directory: Path, window: dict[str, Any], notes: list[Note]) -> Trace | None:
    if not window.get("path"):
        return None
    try:
        return load_trace(directory / window["path"])
    except (FlatoutError, OSError) as error:
        notes.append(Note("warning", f"The trace of this run cannot be read: {error}"))
        return None


def _steps(recording: Recording, measured: steps.Measured, split: StepSplit | None, window: dict[str, Any]) -> Steps:
    sample = measured.sample * 1e3
    median = float(np.median(sample))
    stack = measured.stream.stack
    times = np.repeat(measured.time, np.minimum(measured.n, 1000)) * 1e3
    if len(times) > MOST_TIMES:
        times = times[np.linspace(0, len(times) - 1, MOST_TIMES).astype(int)]
    thirds = np.array_split(sample, 3) if len(sample) >= 12 else []
    trend = float(np.median(thirds[2]) / np.median(thirds[0]) - 1) if thirds else 0.0
    parts, source = _split(measured, split, median)
    opened = next((f for f in recording.all("window-open") if f["at"] == window.get("opened")), {})
    where = context.where(stack[0][0], stack[0][1], stack[0][2]) if stack else None
    return Steps(
        count=measured.count,
        found_by=FOUND_BY[measured.stream.kind],
        kind=KIND[measured.stream.kind],
        ms=Distribution(
            median=median,
            p10=float(np.percentile(sample, 10)),
            p90=float(np.percentile(sample, 90)),
            mean=float(sample.mean()),
            low=float(sample.min()),
            high=float(sample.max()),
        ),
        split_ms=parts,
        split_from=source,
        warmup=measured.warmup,
        warmup_ms=float((measured.time * measured.n)[~measured.steady].sum() * 1e3),
        trend=trend,
        outliers=int((sample > 3 * median).sum()),
        window=(opened["step"], window["step"]) if opened.get("step") is not None else None,
        where=where,
        times_ms=tuple(round(float(t), 4) for t in times),
    )


def _split(measured: steps.Measured, split: StepSplit | None, median: float) -> tuple[Split | None, str]:
    """Shares from the trace window (or from hooks alone), scaled to the median step."""
    if split is not None and split.count:
        usual = split.usual
        whole = float((split.end - split.start)[usual].sum())
        share = {name: float(values[usual].sum()) / whole for name, values in split.parts.items()}
        return Split(**{name: value * median for name, value in share.items()}), f"trace of {split.count} steps"
    chosen = measured.clean if measured.clean.any() else np.ones(len(measured.n), bool)
    whole = float((measured.time * measured.n)[chosen].sum())
    if whole <= 0:
        return None, ""
    waited, traced, called = (float(v[chosen].sum()) / whole for v in (measured.input, measured.trace, measured.call))
    if measured.stream.kind in ("apply", "tape", "model", "fit", "predict", "evaluate"):
        return None, "not told: without a trace, computing and Python cannot be told apart here"
    computing = max(called - traced, 0.0)
    python = max(1 - waited - traced - computing, 0.0)
    scale = median / max(waited + traced + computing + python, 1e-12)
    return (
        Split(input=waited * scale, trace=traced * scale, compute=computing * scale, python=python * scale),
        "hooks alone, without a trace: time inside a call counts as computing",
    )


def _crowded(found: Iterable[Evidence]) -> list[Note]:
    taken = others_in(found) or 0.0
    if taken < STARVED:
        return []
    text = f"Something else had {100 * taken:.0f} % of the processors while the steps ran: they took longer for it."
    return [Note("warning", text, "Run it again on a quieter machine before you trust small shares.")]


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


def _notes(
    recording: Recording, measured: steps.Measured | None, split: StepSplit | None, program: Program
) -> list[Note]:
    notes: list[Note] = []
    tensorflow = recording.imported("tensorflow")
    if not recording.started:
        notes.append(
            Note(
                "warning",
                "The program was not observed: no Python of this environment came up in it.",
                "Give a Python file, or `-m` and a module. A Python started with -I, -E or -S cannot be observed.",
            )
        )
    elif tensorflow is None:
        notes.append(_without_tensorflow(recording, program))
    elif measured is None:
        notes.append(
            Note(
                "warning",
                "No step was seen: the program neither trained, nor called a model or tf.function, nor read a dataset.",
                "If it does so later in its run, give it the arguments that get it there.",
            )
        )
    elif measured.count < 5:
        notes.append(
            Note(
                "warning",
                f"Only {measured.count} steps were seen: too few for a sound verdict.",
                "Let it run longer.",
            )
        )
    if tensorflow is not None and _old(str(tensorflow.get("version"))):
        notes.append(
            Note(
                "warning",
                f"TensorFlow {tensorflow['version']} is older than flatout was made for (2.16 and later).",
                "What could be observed is here; update TensorFlow for the rest.",
            )
        )
    lost = recording.all("lost")
    if len(lost) > 3:  # one reason for them all: another TensorFlow than any that is known
        names = ", ".join(fact["probe"].replace("_", " ") for fact in lost)
        notes.append(Note("warning", f"{len(lost)} views are lost ({names}), the first for this: {lost[0]['text']}"))
    else:
        for fact in lost:
            notes.append(Note("warning", f"A view is lost, {fact['probe'].replace('_', ' ')}: {fact['text']}"))
    failed = {fact["lever"]: fact["text"] for fact in recording.all("lever-failed")}
    for lever, text in failed.items():
        notes.append(Note("warning", f"{lever} could not be installed: {text}", "The program ran without it."))
    for fact in recording.all("note"):
        notes.append(Note("info", fact["text"]))
    if program.signal == "SIGKILL":
        notes.append(
            Note(
                "warning",
                "The program was killed (SIGKILL): by someone, or by the kernel for want of memory.",
                "`dmesg` or the container's log tells which.",
            )
        )
    if recording.started and not recording.ended:
        notes.append(
            Note("info", "The program ended abruptly; what was seen until then is kept.")
            if program.signal
            else Note(
                "warning",
                "The recording breaks off before the program's end: a full disk, or an exit past Python (os.exec, "
                "C code). What was seen until then is kept.",
            )
        )
    if measured is not None and split is None and measured.count >= 5:
        notes.append(Note("info", "There is no trace of steps, so the split and the ops are missing or coarse."))
    return notes


def _without_tensorflow(recording: Recording, program: Program) -> Note:
    failure = next((fact for fact in recording.all("import-failed") if fact["package"] == "tensorflow"), None)
    if failure is not None:
        return Note(
            "warning",
            f"TensorFlow is installed but could not be imported: {failure['type']}: {failure['text']}",
            "`flatout env` looks for the reason.",
        )
    if "No module named 'tensorflow'" in (program.error or ""):
        return Note(
            "warning",
            "TensorFlow is not installed for this Python.",
            'Install it with `pip install "flatout[cpu]"` or `pip install "flatout[gpu]"`.',
        )
    return Note(
        "warning",
        "The program did not import TensorFlow.",
        "flatout observes TensorFlow programs; there is nothing to see in this one. If a process that it starts "
        "uses TensorFlow, run that one with flatout.",
    )


def _old(version: str) -> bool:
    try:
        return tuple(int(part) for part in version.split(".")[:2]) < OLDEST
    except ValueError:
        return False
