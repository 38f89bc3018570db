"""Runs a small program with levers injected, and reads what it told: its results, and what the levers changed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from observed import environment, execute

from flatout.cures import environment_of, in_order
from flatout.observe.settings import ObserveSettings
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
    variables = environment()
    if levers:
        recording = directory / f"recording-{len(list(directory.iterdir()))}"
        recording.mkdir()
        settings = ChildSettings(str(recording), ObserveSettings(trace=False), levers=in_order(levers))
        variables = {**environment_for(settings, variables), **environment_of(levers)}
    done = execute([sys.executable, program], directory, env=variables)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout.decode().splitlines()[-1]))
