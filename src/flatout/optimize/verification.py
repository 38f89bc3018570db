"""Repeats the check of an artefact on this machine: its files, weights, precision, answers and speed.

Only the model is run, by the route that the manifest names. `load.py` is not executed: it is for the artefact's users.
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

from flatout.measure.agreement import agreement, relative_error, unlike
from flatout.model import json_text
from flatout.model.errors import ArtefactUnreadable, ToolMissing
from flatout.optimize import artefact, checks
from flatout.optimize.work.workers import start_worker
from flatout.process.watchdog import Watchdog
from flatout.process.worker import Worker, WorkFailed
from flatout.routes import find
from flatout.routes._route import Contents, Route

SECONDS = 120.0
MANIFEST_FIELDS: dict[str, type] = {
    "route": str, "setting": dict, "batch": int, "files": dict, "serving": dict, "inputs": list, "outputs": list,
}  # fmt: skip
MARGIN = 0.01
"""How much the agreement may be below that of the machine that made the artefact: processors round differently."""


@dataclass(frozen=True)
class Finding:
    """The result of one check. Written as JSON by `flatout verify --json`."""

    what: str
    ok: bool
    text: str


def verify(directory: Path, say: Callable[[Finding], None]) -> bool:
    manifest = read_manifest(directory)
    route = find(str(manifest["route"]))
    if (package := route.missing_package()) is not None:
        raise ToolMissing(
            f'{route.family} is not installed: {package} is missing. pip install "flatout[{route.extra}]"'
        )
    findings = [_check_files(directory, manifest)]
    say(findings[0])
    if not findings[0].ok:
        return False  # changed files are not opened
    watchdog = Watchdog()
    with tempfile.TemporaryDirectory() as scratch:
        worker = start_worker(Path(scratch) / "log.txt", watchdog)
        try:
            opened = _Artefact(directory, manifest, route, worker, Path(scratch))
            for check in (_check_loading, _check_contents, _check_answers, _measure_latency):
                findings.append(check(opened))
                say(findings[-1])
        except WorkFailed as error:
            findings.append(Finding("run", False, str(error)))
            say(findings[-1])
        finally:
            worker.end()
            watchdog.close()
    return all(finding.ok for finding in findings)


def read_manifest(directory: Path) -> dict[str, Any]:
    path = directory / artefact.MANIFEST
    try:
        manifest = json_text.read_object(path, largest=64 << 20)
        if manifest["schema"] > artefact.SCHEMA:
            raise ArtefactUnreadable(f"{path} was written by a newer flatout: update with `pip install -U flatout`.")
        for name, kind in MANIFEST_FIELDS.items():
            if not isinstance(manifest[name], kind):
                raise ValueError(f"its {name} is {json.dumps(manifest[name])[:60]}")
        if not all(isinstance(digest, str) for digest in manifest["files"].values()):
            raise ValueError("its files have no digests")
    except FileNotFoundError:
        what = "has no manifest.json" if directory.is_dir() else "does not exist"
        raise ArtefactUnreadable(f"{directory} {what}. Name a directory that `flatout optimize` wrote.") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArtefactUnreadable(
            f"{directory} is not an artefact of `flatout optimize`: {artefact.MANIFEST} cannot be read ({error})."
        ) from None
    return dict(manifest)


def _check_files(directory: Path, manifest: dict[str, Any]) -> Finding:
    wrong = []
    for name, digest in manifest["files"].items():
        path = directory / name
        inside = os.path.realpath(path).startswith(os.path.realpath(directory) + os.sep)
        if not inside or not path.is_file() or artefact.digest(path) != digest:
            wrong.append(name)
    if wrong:
        return Finding("files", False, f"changed or missing: {', '.join(wrong[:5])}")
    return Finding("files", True, f"all {len(manifest['files'])} are unchanged")


@dataclass(frozen=True)
class _Artefact:
    """An artefact under test, with the process that serves it."""

    directory: Path
    manifest: dict[str, Any]
    route: Route
    worker: Worker
    scratch: Path

    @property
    def feeds(self) -> list[str]:
        return [str(self.directory / artefact.CHECK), *(f"in{i}" for i in range(len(self.manifest["inputs"])))]


def _check_loading(one: _Artefact) -> Finding:
    answer = one.worker.ask(
        "open",
        SECONDS,
        route=one.route.name,
        directory=str(one.directory),
        setting=one.manifest["setting"],
        batch=one.manifest["batch"],
        feeds=one.feeds,
    )
    return Finding("loads", True, f"in {answer['load_ms'] + answer['first_ms']:.0f} ms, in a fresh process")


def _check_contents(one: _Artefact) -> Finding:
    answer = one.worker.ask("inspect", SECONDS, route=one.route.name, directory=str(one.directory))
    contents = Contents(answer["weights"], answer["weight_bytes"], answer["computes"])
    parameters, stated = int(one.manifest.get("parameters", 0)), bool(one.manifest.get("precision", "stated"))
    problem = checks.check_contents(one.route, contents, parameters, states_precision=stated)
    nodes = ", ".join(f"{count} heavy nodes in {name}" for name, count in contents.computes.items())
    return Finding("contents", not problem, problem or f"{contents.weights:,} weights{f'; {nodes}' if nodes else ''}")


def _check_answers(one: _Artefact) -> Finding:
    output = one.scratch / "answers.npz"
    one.worker.ask("answer", SECONDS, feeds=one.feeds, output=str(output))
    count = len(one.manifest["outputs"])
    with np.load(output, allow_pickle=False) as stored:
        answers = [stored[f"out{i}"] for i in range(len(stored.files))]
    with np.load(one.directory / artefact.CHECK, allow_pickle=False) as stored:
        original = [stored[f"original{i}"] for i in range(count)]
        before = [stored[f"answer{i}"] for i in range(count)]
    if problem := unlike(original, answers):
        return Finding("answers", False, problem)
    then, now = min(agreement(original, before)), min(agreement(original, answers))
    text = f"agree with the original's to {now:.5f} on {len(answers[0])} samples ({then:.5f} where it was made)"
    if not now >= then - MARGIN or not np.isfinite(then):
        return Finding("answers", False, text)
    return Finding("answers", True, f"{text}; with its own to {relative_error(before, answers):.1e}")


def _measure_latency(one: _Artefact) -> Finding:
    times = one.worker.ask("time", SECONDS, seconds=1.0, at_least=3)["times"]
    p50, p95, p99 = (float(value) for value in np.percentile(times, (50, 95, 99)))
    before = one.manifest["serving"].get("latencies") or [{}]
    compared = f" ({before[0]['p50']:.3g} ms where it was made)" if "p50" in before[0] else ""
    return Finding("latency", True, f"p50 {p50:.3g} ms, p95 {p95:.3g} ms, p99 {p99:.3g} ms{compared}")
