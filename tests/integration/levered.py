"""Runs a small program with levers injected, and reads what it told: its results, and what the levers changed.

Programs are forked from one process that has imported TensorFlow, unless a lever needs variables before that."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import forked
from observed import environment, execute

from flatout.cures import environment_of, in_order
from flatout.observe.settings import ObserveSettings
from flatout.process.messages import encode
from flatout.trial.launcher import environment_for
from flatout.trial.settings import ChildSettings

TOLD = """
import json, sys

def finder():
    return next((f for f in sys.meta_path if hasattr(f, "observer")), None)

def tell(results):
    found = finder()
    injections = found.observer.injections.levers if found is not None else []
    totals = found.observer.shared.functions.totals if found is not None else {}
    print(json.dumps({
        "results": results,
        "changes": {i.lever + "=" + i.value.rpartition("/")[2]: i.changes for i, _ in injections},
        "notes": [note for i, _ in injections for note in i.notes],
        "traces": {key[2]: total.traces for key, total in totals.items()},
        "streams": {s.kind: s.count for s in found.observer.streams.values()} if found else {},
    }))
"""


def outcome(directory: Path, program: Path, *levers: str) -> dict[str, Any]:
    """What the program printed last; bare where no lever is given."""
    (directory / "told.py").write_text(TOLD)
    settings = None
    if levers:
        recording = directory / f"recording-{len(list(directory.iterdir()))}"
        recording.mkdir()
        settings = ChildSettings(str(recording), ObserveSettings(trace=False), levers=in_order(levers))
    code, said, errors = ran(program, directory, settings, environment_of(levers))
    assert code == 0, errors[-3000:]
    return dict(json.loads(said.splitlines()[-1]))


def ran(
    program: Path, directory: Path, settings: ChildSettings | None, before_import: Mapping[str, str], *arguments: str
) -> tuple[int, str, str]:
    """Exit code and output. `before_import`: variables that levers need before TensorFlow is imported."""
    if not before_import:
        told = encode(settings) if settings else ""
        return forked.run(program, *arguments, directory=directory, settings=told)
    variables = environment_for(settings, environment()) if settings else environment()
    done = execute([sys.executable, program, *arguments], directory, env={**variables, **before_import})
    return done.returncode, done.stdout.decode(), done.stderr
