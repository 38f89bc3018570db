"""Runs programs of tests/programs under `flatout run` and gives back what was found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "programs"
sys.path.insert(0, str(PROGRAMS))


def observe(program: Path, **variables: str) -> dict[str, Any]:
    """The case of one observed run, as JSON."""
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "case.json"
        command = [sys.executable, "-m", "flatout", "run", "-q", "--json", str(target), str(program)]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **variables}
        done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
        if not target.exists():
            raise RuntimeError(f"{program.name}: {done.stderr[-1000:]}")
        found: dict[str, Any] = json.loads(target.read_text())
        return found
