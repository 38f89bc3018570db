"""The GitHub Action, its own steps run as a runner would run them, on a repository whose pull request is slower.

The program sleeps through its steps under a name that stands for TensorFlow, so that real runs take a second.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from observed import environment

ACTION = Path(__file__).parent.parent.parent / "action.yml"
PROGRAM = """
import sys, time
import tensorflow
observer = next((finder.observer for finder in sys.meta_path if hasattr(finder, "observer")), None)
def probe():
    return observer.streams.make("fit", "steps", "sleeps")
stream = probe()
print(sys.argv[1:])
for step in range(60):
    began = time.perf_counter()
    time.sleep({pause})  # what a step takes
    observer.ticks.tick(stream, began, time.perf_counter())
"""


def git(where: Path, *words: str) -> str:
    settings = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    return subprocess.run(["git", *settings, *words], cwd=where, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What `actions/checkout` leaves: a clone with the pull request checked out, detached."""
    origin = tmp_path / "origin"
    origin.mkdir()
    git(origin, "init", "-q", "-b", "main")
    (origin / "tensorflow.py").write_text("__version__ = '2.21.0'\n")
    (origin / "train.py").write_text(PROGRAM.format(pause=0.008))
    git(origin, "add", ".")
    git(origin, "commit", "-qm", "fast")
    git(origin, "checkout", "-q", "-b", "feature")
    (origin / "train.py").write_text(PROGRAM.format(pause=0.024))
    git(origin, "commit", "-qam", "slow")
    git(origin, "checkout", "-q", "main")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(origin), str(clone))
    git(clone, "checkout", "-q", "--detach", "origin/feature")
    return clone


def steps_of_action(inputs: dict[str, str]) -> list[tuple[str, dict[str, str]]]:
    """The shell scripts of the action with their variables, expressions filled in."""
    described: dict[str, Any] = yaml.safe_load(ACTION.read_text())
    given = {name: str(one.get("default", "")) for name, one in described["inputs"].items()} | inputs
    found = []
    for step in described["runs"]["steps"]:
        if step["name"] in ("Install flatout", "Post"):  # tests/unit/test_history_gate_comment.py posts
            continue
        values = {}
        for name, text in step.get("env", {}).items():
            for key, value in given.items():
                text = text.replace(f"${{{{ inputs.{key} }}}}", value)
            text = text.replace("${{ inputs.baseline || github.base_ref || 'main' }}", given["baseline"] or "main")
            values[name] = text.replace("${{ runner.temp }}", "$RUNNER_TEMP")
        found.append((step["run"], values))
    return found


@pytest.mark.slow
def test_the_action_stops_a_slower_pull_request(checkout: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temp"
    temporary.mkdir()
    files = {name: tmp_path / name.lower() for name in ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    variables = environment(
        RUNNER_TEMP=str(temporary),
        PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        **{name: str(path) for name, path in files.items()},
    )
    codes, said = [], ""
    for script, values in steps_of_action({"program": "train.py", "runs": "1", "arguments": "--name 'two words'"}):
        filled = {name: text.replace("$RUNNER_TEMP", str(temporary)) for name, text in values.items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script],
            cwd=checkout,
            env=variables | filled,
            capture_output=True,
            text=True,
            timeout=400,
        )
        codes.append(done.returncode)
        said += done.stdout + done.stderr
        if files["GITHUB_ENV"].exists():
            variables |= dict(line.split("=", 1) for line in files["GITHUB_ENV"].read_text().splitlines())
    assert codes == [0, 1], said
    assert said.count("['--name', 'two words']") == 2, "a run of each side, with the arguments as they were meant"
    assert "❌ flatout gate" in files["GITHUB_STEP_SUMMARY"].read_text()
    assert "verdict=Regression" in files["GITHUB_OUTPUT"].read_text()
    summary = (temporary / "flatout-gate.md").read_text()
    assert summary.index("❌ flatout gate") < summary.index("<summary>The last run of this pull request</summary>")
    assert "Repeat it: `flatout run train.py" in summary
    judged = json.loads((temporary / "flatout-gate.json").read_text())
    (program,) = judged["programs"]
    assert program["program"] == "train.py"
    assert program["comparison"]["regressed"] is True
    assert [one["what"] for one in program["comparison"]["program"]] == ["source"]
