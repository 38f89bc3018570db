"""The progress of a `run` or `tune`, from the files that its processes have written so far.

The child of a run writes its steps several times a second, the coordinator of a tune each finished trial. These files
are only read, complete or not, so following a program does not slow it down.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from flatout import store
from flatout.model import codec
from flatout.model.case import Trial
from flatout.model.levers import shown
from flatout.observe.reading import recording as recordings
from flatout.observe.reading import steps
from flatout.serve.case_directory import UnfinishedCase
from flatout.tune import journal

SHOWN = 400
"""Steps that are drawn at most."""


def progress(begun: UnfinishedCase) -> dict[str, Any]:
    """Plain values for the page that shows the progress of a case."""
    found: dict[str, Any] = {
        "name": begun.name,
        "kind": begun.kind,
        "running": begun.running,
        "seconds": max(0.0, time.time() - begun.began),
        "done": (begun.directory / store.FILE).exists(),
    }
    return found | (_of_tune(begun.directory) if begun.kind == "tune" else _of_run(begun.directory))


def _of_run(directory: Path) -> dict[str, Any]:
    recording = recordings.load(directory)
    stream = steps.choose(steps.streams(recording))
    values: dict[str, Any] = {"phase": _phase(recording, stream is not None)}
    failure = recording.last("exception")
    if failure:
        values["error"] = f"{failure.get('type')}: {failure.get('text')}"[:300]
    if stream is None:
        return values
    measured = steps.measure(recording, stream)
    times = measured.time * 1e3
    steady = times[measured.steady]
    return values | {
        "steps": measured.count,
        "median_ms": float(np.median(steady)) if len(steady) else None,
        "last_ms": float(np.median(times[-10:])),
        "warmup": int(measured.warmup),
        "times_ms": [round(float(value), 4) for value in times[-SHOWN:]],
        "first_shown": max(0, len(times) - SHOWN),
        "what": str(stream.name)[:120],
    }


def _phase(recording: recordings.Recording, stepping: bool) -> str:
    if recording.ended:
        return "the program has ended; flatout analyses the recording"
    if not recording.started:
        return "starting"
    if recording.imported("tensorflow") is None:
        return "importing TensorFlow"
    if not stepping:
        return "before the first step"
    opened, closed = len(recording.all("window-open")), len(recording.all("window-close"))
    return "running steps, tracing some of them now" if opened > closed else "running steps"


def _of_tune(directory: Path) -> dict[str, Any]:
    rows = journal.rows(directory / journal.FILE)
    trials = [codec.read(Trial, row["trial"], "trial") for row in rows if isinstance(row.get("trial"), dict)]
    scouted = any("scouted" in row for row in rows)
    values: dict[str, Any] = {"trials": [_row(trial) for trial in trials]}
    if any("done" in row for row in rows):
        values["phase"] = "all trials are done; writing the case"
    elif scouted:
        stage = trials[-1].stage if trials else ""
        values["phase"] = {
            "": "starting the baselines",
            "bound": "trying levers, one at a time, against two baselines",
            "single": "trying levers, one at a time, against two baselines",
            "combination": "confirming the winners in fresh processes",
            "patch": "running the patched program",
        }.get(stage, "trying levers")
    else:
        values["phase"] = "observing the unmodified program"
        scouts = sorted(directory.glob("scout-*"))
        if scouts:
            values |= {**_of_run(scouts[-1]), "phase": values["phase"]}
    return values


def _row(trial: Trial) -> dict[str, Any]:
    speedup = trial.speedup
    return {
        "levers": shown(trial.levers)[:200],
        "stage": trial.stage,
        "status": trial.status,
        "parity": trial.parity,
        "note": trial.note[:300],
        "speedup": [speedup.low, speedup.ratio, speedup.high] if speedup is not None else None,
    }
