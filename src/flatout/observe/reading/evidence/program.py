"""What the program did once: switches, compile and other Keras calls, how it ended, what it used of the machine."""

from __future__ import annotations

import os

import numpy as np

from flatout.measure.processors import STARVED, taken_by_others
from flatout.model.case import Evidence
from flatout.observe.reading.recording import Recording
from flatout.observe.reading.steps import Measured
from flatout.source import context

ENOUGH = 0.25
"""Of the steps, what has to be left to judge by where others are left out."""


def levers(recording: Recording) -> list[Evidence]:
    """The levers that were injected, without those that could not be installed."""
    failed = {fact["lever"] for fact in recording.all("lever-failed")}
    return [Evidence("injected", fact["lever"]) for fact in recording.all("lever") if fact["lever"] not in failed]


def switches(recording: Recording) -> list[Evidence]:
    found = [
        Evidence(
            "switch",
            fact["name"],
            where=context.where(*fact["where"]) if fact.get("where") else None,
            source="hook",
            data={"given": fact.get("given", [])},
        )
        for fact in recording.all("switch")
    ]
    found += [
        Evidence(
            "legacy-input",
            fact["name"],
            where=context.where(*fact["where"]) if fact.get("where") else None,
            source="hook",
        )
        for fact in recording.all("legacy-input")
    ]
    failure = recording.last("exception")
    if failure:
        where = failure.get("where")
        found.append(
            Evidence(
                "exception",
                failure["type"],
                where=context.where(*where) if where else None,
                note=failure["text"][:500],
                source="interpreter",
            )
        )
    return found


def keras(recording: Recording) -> list[Evidence]:
    found = [
        Evidence(
            "compile",
            where=context.where(*fact["where"]) if fact.get("where") else None,
            source="hook",
            data={key: fact.get(key) for key in ("run_eagerly", "steps_per_execution", "jit_compile")},
        )
        for fact in recording.all("compile")
    ]
    newest = {fact["method"]: fact for fact in recording.all("keras-calls")}
    kinds = {fact["of"]: fact["id"] for fact in recording.all("stream")}
    for method, fact in newest.items():
        rows = recording.ticks[recording.ticks[:, 0] == kinds.get(method, -1)]
        own = float(np.median((rows[:, 3] - rows[:, 2]) / np.maximum(rows[:, 1], 1))) * 1e3 if len(rows) else None
        for file, line, function, calls, seconds, batches in fact["rows"]:
            found.append(
                Evidence(
                    "keras-call",
                    method,
                    where=context.where(file, line, function),
                    source="hook",
                    data={"calls": calls, "ms": seconds * 1e3, "batches": batches, "batch_ms": own},
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
                Evidence(
                    "cpu-use",
                    round(cores, 3),
                    "cores",
                    source="process clock",
                    data={"cores": _cores(), "idle": None if idle is None else round(idle, 3)},
                )
            )
            growth = (inside[-1][1] - inside[len(inside) // 2][1]) / max(
                inside[-1][0] - inside[len(inside) // 2][0], 1e-9
            )
            found.append(Evidence("memory-growth", growth, "bytes/s", source="process"))
    if rows:
        found.append(Evidence("process-memory", max(int(row[1]) for row in rows), "bytes", source="process"))
    return found


def undisturbed(recording: Recording, measured: Measured | None) -> list[Evidence]:
    """The mean of the steps during which nothing else had the processors, where something else had them now and then.

    A machine that stands still for a second makes one step a hundred times as long, and that is no cost of the program.
    """
    rows = [row for row in recording.last("resources").get("rows") or [] if len(row) > 3]
    if measured is None or len(rows) < 3:
        return []
    at, _, used, idle = np.array(rows, dtype=np.float64).T
    cores = os.cpu_count() or 1
    pieces = zip(np.diff(at), np.diff(used), np.diff(idle), strict=True)
    taken = np.array([taken_by_others(wall, own, free, cores) for wall, own, free in pieces])
    disturbed = np.concatenate(([0.0], np.cumsum(np.where(taken >= STARVED, np.diff(at), 0.0))))
    ends = measured.stream.rows[:, 3]
    begins = ends - measured.time * measured.n
    calm = measured.clean & (np.interp(ends, at, disturbed) == np.interp(begins, at, disturbed))
    if calm.sum() == measured.clean.sum() or measured.n[calm].sum() < ENOUGH * measured.n[measured.clean].sum():
        return []
    mean = float(np.average(measured.time[calm], weights=measured.n[calm])) * 1e3
    return [Evidence("undisturbed-mean", mean, "ms", source="process clock")]


def yardstick(recording: Recording, measured: Measured | None) -> list[Evidence]:
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
        Evidence(
            "yardstick",
            float(np.median(micros[steady, 0])),
            "µs",
            source="a fixed piece of work beside the program",
            data={
                "by": fact.get("by", ""),
                "rows": [[int(b), *m.tolist()] for b, m in zip(begun, micros, strict=True)],
            },
        )
    ]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
