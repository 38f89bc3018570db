"""Repeats the check of an artefact, here: its files, its weights, its precision, its answers, and how fast it is.

Nothing of the artefact is executed but the model itself, by the route that the manifest names: `load.py` is for its
users.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flatout.measure.agreement import agreement, relative_error
from flatout.model.errors import ArtefactUnreadable, ToolMissing
from flatout.optimize import checks, handover
from flatout.optimize.work.workers import start_worker
from flatout.process.watchdog import Watchdog
from flatout.process.worker import Worker, WorkFailed
from flatout.routes import find
from flatout.routes._route import Contents, Route

SECONDS = 120.0
MARGIN = 0.01
"""How much less than at home the answers may agree: other processors round in other places."""


@dataclass(frozen=True)
class Finding:
    what: str
    ok: bool
    text: str


def verify(place: Path, say: Callable[[Finding], None]) -> bool:
    manifest = read(place)
    route = find(str(manifest["route"]))
    if (package := route.missing_package()) is not None:
        raise ToolMissing(
            f'{route.family} is not installed: {package} is missing. pip install "flatout[{route.extra}]"'
        )
    findings = [_files(place, manifest)]
    say(findings[0])
    if not findings[0].ok:
        return False  # what was changed is not opened
    watchdog = Watchdog()
    with tempfile.TemporaryDirectory() as scratch:
        worker = start_worker(Path(scratch) / "log.txt", watchdog)
        try:
            for finding in (_opened, _contents, _answers, _speed):
                findings.append(finding(place, manifest, route, worker, Path(scratch)))
                say(findings[-1])
        except WorkFailed as error:
            findings.append(Finding("run", False, str(error)))
            say(findings[-1])
        finally:
            worker.end()
            watchdog.close()
    return all(finding.ok for finding in findings)


def read(place: Path) -> dict[str, Any]:
    path = place / handover.MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if manifest["schema"] > handover.SCHEMA:
            raise ArtefactUnreadable(f"{path} was written by a newer flatout: update with `pip install -U flatout`.")
        for name in ("route", "setting", "batch", "files", "serving", "inputs", "outputs"):
            manifest[name]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArtefactUnreadable(
            f"{place} is not an artefact that `flatout optimize` made: {handover.MANIFEST} cannot be read ({error})."
        ) from None
    return dict(manifest)


def _files(place: Path, manifest: dict[str, Any]) -> Finding:
    wrong = []
    for name, digest in manifest["files"].items():
        path = place / name
        inside = os.path.realpath(path).startswith(os.path.realpath(place) + os.sep)
        if not inside or not path.is_file() or handover.digest(path) != digest:
            wrong.append(name)
    if wrong:
        return Finding("files", False, f"changed or missing: {', '.join(wrong[:5])}")
    return Finding("files", True, f"all {len(manifest['files'])} are as they were made")


def _feeds(place: Path, manifest: dict[str, Any]) -> list[str]:
    return [str(place / handover.CHECK), *(f"in{i}" for i in range(len(manifest["inputs"])))]


def _opened(place: Path, manifest: dict[str, Any], route: Route, worker: Worker, scratch: Path) -> Finding:
    said = worker.ask(
        "open",
        SECONDS,
        route=route.name,
        directory=str(place),
        setting=manifest["setting"],
        batch=manifest["batch"],
        feeds=_feeds(place, manifest),
    )
    return Finding("loads", True, f"in {said['load_ms'] + said['first_ms']:.0f} ms, in a fresh process")


def _contents(place: Path, manifest: dict[str, Any], route: Route, worker: Worker, scratch: Path) -> Finding:
    said = worker.ask("inspect", SECONDS, route=route.name, directory=str(place))
    inside = Contents(said["weights"], said["weight_bytes"], said["computes"])
    problem = checks.contents(route, inside, int(manifest.get("parameters", 0)))
    told = ", ".join(f"{count} heavy nodes in {name}" for name, count in inside.computes.items())
    return Finding("contents", not problem, problem or f"{inside.weights:,} weights{f'; {told}' if told else ''}")


def _answers(place: Path, manifest: dict[str, Any], route: Route, worker: Worker, scratch: Path) -> Finding:
    output = scratch / "answers.npz"
    worker.ask("answer", SECONDS, feeds=_feeds(place, manifest), output=str(output))
    count = len(manifest["outputs"])
    with np.load(output, allow_pickle=False) as stored:
        given = [stored[f"out{i}"] for i in range(len(stored.files))]
    with np.load(place / handover.CHECK, allow_pickle=False) as stored:
        original = [stored[f"original{i}"] for i in range(count)]
        before = [stored[f"answer{i}"] for i in range(count)]
    if len(given) != count:
        return Finding("answers", False, f"{len(given)} outputs; {count} were expected")
    then, now = min(agreement(original, before)), min(agreement(original, given))
    text = f"agree with the original's to {now:.5f} on {len(given[0])} samples ({then:.5f} where it was made)"
    if now < then - MARGIN:
        return Finding("answers", False, text)
    return Finding("answers", True, f"{text}; with its own to {relative_error(before, given):.1e}")


def _speed(place: Path, manifest: dict[str, Any], route: Route, worker: Worker, scratch: Path) -> Finding:
    times = worker.ask("time", SECONDS, seconds=1.0, at_least=3)["times"]
    p50, p95, p99 = (float(value) for value in np.percentile(times, (50, 95, 99)))
    there = manifest["serving"].get("latencies") or [{}]
    compared = f" ({there[0]['p50']:.3g} ms where it was made)" if "p50" in there[0] else ""
    return Finding("latency", True, f"p50 {p50:.3g} ms, p95 {p95:.3g} ms, p99 {p99:.3g} ms{compared}")
