"""How far a running `run` or `tune` has come, from what its processes have written so far.

A run's child writes its steps several times a second, a tune's coordinator each finished trial at once. Both are only
read here, whole or cut off in the middle of a line; whoever follows costs the program nothing.
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
from flatout.serve.shelf import Begun
from flatout.tune import journal

SHOWN = 400
"""Steps that are drawn."""


def progress(begun: Begun) -> dict[str, Any]:
    """Plain values for the page that follows a case."""
    told: dict[str, Any] = {
        "name": begun.name,
        "kind": begun.kind,
        "running": begun.running,
        "seconds": max(0.0, time.time() - begun.began),
        "done": (begun.directory / store.FILE).exists(),
    }
    return told | (_of_tune(begun.directory) if begun.kind == "tune" else _of_run(begun.directory))


def _of_run(directory: Path) -> dict[str, Any]:
    recording = recordings.load(directory)
    found = steps.choose(steps.streams(recording))
    told: dict[str, Any] = {"phase": _phase(recording, found is not None)}
    failure = recording.last("exception")
    if failure:
        told["error"] = f"{failure.get('type')}: {failure.get('text')}"[:300]
    if found is None:
        return told
    measured = steps.measure(recording, found)
    times = measured.time * 1e3
    steady = times[measured.steady]
    return told | {
        "steps": measured.count,
        "median_ms": float(np.median(steady)) if len(steady) else None,
        "last_ms": float(np.median(times[-10:])),
        "warmup": int(measured.warmup),
        "times_ms": [round(float(value), 4) for value in times[-SHOWN:]],
        "first_shown": max(0, len(times) - SHOWN),
        "what": str(found.name)[:120],
    }


def _phase(recording: recordings.Recording, stepping: bool) -> str:
    if recording.ended:
        return "the program has ended; flatout is analysing what was seen"
    if not recording.started:
        return "starting"
    if recording.imported("tensorflow") is None:
        return "importing TensorFlow"
    if not stepping:
        return "before the first step"
    opened, closed = len(recording.all("window-open")), len(recording.all("window-close"))
    return "taking steps, some of them traced right now" if opened > closed else "taking steps"


def _of_tune(directory: Path) -> dict[str, Any]:
    rows = journal.rows(directory / journal.FILE)
    trials = [codec.read(Trial, row["trial"], "trial") for row in rows if isinstance(row.get("trial"), dict)]
    scouted = any("scouted" in row for row in rows)
    told: dict[str, Any] = {"trials": [_row(trial) for trial in trials]}
    if any("done" in row for row in rows):
        told["phase"] = "all trials are done; the case is being written"
    elif scouted:
        stage = trials[-1].stage if trials else ""
        told["phase"] = {
            "": "starting the baselines",
            "bound": "trying levers, one at a time, against two baselines",
            "single": "trying levers, one at a time, against two baselines",
            "combination": "confirming what has won, in fresh processes",
            "patch": "the patched program was run",
        }.get(stage, "trying levers")
    else:
        told["phase"] = "watching the program as it is"
        scouts = sorted(directory.glob("scout-*"))
        if scouts:
            told |= {**_of_run(scouts[-1]), "phase": told["phase"]}
    return told


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
