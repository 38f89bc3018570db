"""What the program did once: switches, compile and other Keras calls, how it ended, what it used of the machine."""

from __future__ import annotations

import numpy as np

from flatout.measure import processors
from flatout.measure.processors import STARVED, taken_by_others
from flatout.model.case import Evidence
from flatout.model.evidence.program import (
    CpuUse,
    Injected,
    KerasCall,
    LegacyInput,
    MemoryGrowth,
    ModelCompiled,
    ProcessMemory,
    ProgramError,
    RecurrentLayer,
    Switch,
    UndisturbedMean,
    Yardstick,
)
from flatout.observe.reading.recording import Recording
from flatout.observe.reading.steps import Measured
from flatout.source import context

ENOUGH = 0.25
"""Share of the steps that has to remain where disturbed ones are left out."""


def levers(recording: Recording) -> list[Evidence]:
    """The levers that were injected, without those that could not be installed."""
    failed = {fact["lever"] for fact in recording.all("lever-failed")}
    return [Injected(fact["lever"]) for fact in recording.all("lever") if fact["lever"] not in failed]


def switches(recording: Recording) -> list[Evidence]:
    found: list[Evidence] = [
        Switch(
            fact["name"],
            tuple(fact.get("given", ())),
            where=context.where(*fact["where"]) if fact.get("where") else None,
            source="hook",
        )
        for fact in recording.all("switch")
    ]
    found += [
        LegacyInput(fact["name"], where=context.where(*fact["where"]) if fact.get("where") else None, source="hook")
        for fact in recording.all("legacy-input")
    ]
    failure = recording.last("exception")
    if failure:
        where = failure.get("where")
        found.append(
            ProgramError(
                failure["type"],
                where=context.where(*where) if where else None,
                note=failure["text"][:500],
                source="interpreter",
            )
        )
    return found


def keras(recording: Recording, measured: Measured | None) -> list[Evidence]:
    found: list[Evidence] = [
        ModelCompiled(
            fact.get("run_eagerly"),
            fact.get("steps_per_execution"),
            fact.get("jit_compile"),
            where=context.where(*fact["where"]) if fact.get("where") else None,
            source="hook",
        )
        for fact in recording.all("compile")
    ]
    for file, line, function, layer, name, unrolled, steps in recording.last("recurrent-layers").get("rows") or []:
        where = context.where(file, line, function)
        found.append(RecurrentLayer(layer, name, steps, unrolled, where=where, source="hook"))
    newest = {fact["method"]: fact for fact in recording.all("keras-calls")}
    kinds = {fact["of"]: fact["id"] for fact in recording.all("stream")}
    for method, fact in newest.items():
        rows = recording.ticks[recording.ticks[:, 0] == kinds.get(method, -1)]
        own = float(np.median((rows[:, 3] - rows[:, 2]) / np.maximum(rows[:, 1], 1))) * 1e3 if len(rows) else None
        for file, line, function, calls, seconds, batches, *more in fact["rows"]:
            single, first, values, epochs, few, apart = [*more, *(None, 0.0, 0, 0, 0, 0)[len(more) :]][:6]
            times = more[6:8]
            found.append(
                KerasCall(
                    method,
                    calls=calls,
                    ms=seconds * 1e3,
                    batches=batches,
                    batch_ms=own,
                    single=single,
                    first_ms=first * 1e3,
                    values=values,
                    epochs=epochs,
                    few=few,
                    apart=apart,
                    outside=measured is not None and len(measured.n) > 0 and measured.is_outside(times),
                    where=context.where(file, line, function),
                    source="hook",
                )
            )
    return found


def resources(recording: Recording, measured: Measured | None) -> list[Evidence]:
    rows = recording.last("resources").get("rows") or []
    found: list[Evidence] = []
    if len(rows) >= 2 and measured is not None and len(measured.stream.rows) > 2:
        first = measured.stream.rows[min(measured.warmup, len(measured.stream.rows) - 2), 3]
        last = measured.stream.rows[-1, 3]
        inside = [row for row in rows if first <= row[0] <= last]
        if len(inside) >= 3:
            wall = inside[-1][0] - inside[0][0]
            cores = (inside[-1][2] - inside[0][2]) / wall if wall > 0 else 0.0
            idle = (inside[-1][3] - inside[0][3]) / wall if wall > 0 and len(inside[0]) > 3 else None
            found.append(
                CpuUse(
                    round(cores, 3),
                    cores=processors.count(),
                    idle=None if idle is None else round(idle, 3),
                    source="process clock",
                )
            )
            growth = (inside[-1][1] - inside[len(inside) // 2][1]) / max(
                inside[-1][0] - inside[len(inside) // 2][0], 1e-9
            )
            found.append(MemoryGrowth(growth, source="process"))
    if rows:
        found.append(ProcessMemory(max(int(row[1]) for row in rows), source="process"))
    return found


def undisturbed(recording: Recording, measured: Measured | None) -> list[UndisturbedMean]:
    """The mean of the steps during which nothing else had the processors, where something else had them now and then.

    A machine that is stopped for a second makes one step a hundred times as long, which is no cost of the program.
    """
    rows = [row for row in recording.last("resources").get("rows") or [] if len(row) > 3]
    if measured is None or len(rows) < 3:
        return []
    at, _, used, idle = np.array(rows, dtype=np.float64).T
    cores = processors.count()
    pieces = zip(np.diff(at), np.diff(used), np.diff(idle), strict=True)
    taken = np.array([taken_by_others(wall, own, free, cores) for wall, own, free in pieces])
    disturbed = np.concatenate(([0.0], np.cumsum(np.where(taken >= STARVED, np.diff(at), 0.0))))
    ends = measured.stream.rows[:, 3]
    begins = ends - measured.time * measured.n
    undisturbed_steps = measured.clean & (np.interp(ends, at, disturbed) == np.interp(begins, at, disturbed))
    steps, all_steps = measured.n[undisturbed_steps].sum(), measured.n[measured.clean].sum()
    if undisturbed_steps.sum() == measured.clean.sum() or steps < ENOUGH * all_steps:
        return []
    mean = float(np.average(measured.time[undisturbed_steps], weights=measured.n[undisturbed_steps])) * 1e3
    return [UndisturbedMean(mean, source="process clock")]


def yardstick(recording: Recording, measured: Measured | None) -> list[Yardstick]:
    """The speed of the machine, second by second: the step it began with, what the work took, the error of that."""
    fact = recording.last("yardstick")
    rows = np.array(fact.get("rows") or [], dtype=np.float64).reshape(-1, 3)
    if measured is None or not len(rows):
        return []
    done = np.concatenate(([0], np.cumsum(measured.n)))
    begun = done[np.searchsorted(measured.stream.rows[:, 3], rows[:, 0])]
    steady = (begun >= measured.warmup) & (begun < done[-1])
    if not steady.any():
        return []
    micros = np.round(rows[:, 1:] * 1e6, 3)
    return [
        Yardstick(
            float(np.median(micros[steady, 0])),
            by=fact.get("by", ""),
            rows=tuple(
                (int(step), float(took), float(error)) for step, (took, error) in zip(begun, micros, strict=True)
            ),
            source="a fixed piece of work beside the program",
        )
    ]
