"""A coordinator that is killed leaves nobody behind and loses no finished trial; `--resume` goes on.

The coordinator does not care what makes the steps: here a program sleeps through them under a name that stands for
TensorFlow, and tells its losses to whoever writes them down, so that a whole tune takes less than a minute and can be
killed at several moments.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from observed import environment
from swift import SWIFT

from waiting import until

pytestmark = pytest.mark.slow

PROGRAM = """
import sys, time
import tensorflow
observer = next((finder.observer for finder in sys.meta_path if hasattr(finder, "observer")), None)
values = getattr(getattr(observer.trial.at_step, "__self__", None), "_values", None)
def probe():
    return observer.streams.make("fit", "steps", "sleeps")
stream = probe()
for step in range(600):
    began = time.perf_counter()
    time.sleep(tensorflow.PAUSE)  # what a step takes
    if values is not None and values.wanted:
        values.keep_scalar("loss", step + 1, 1 / (step + 1))
    observer.ticks.tick(stream, began, time.perf_counter())
"""

BUDGET = "50s"

CURE = '''
"""Sleeps {what}.

## What it changes
The pause.
"""
from flatout.cures import Cure

CURE = Cure(equivalence="semantic", side="host")
'''

INJECT = """
from flatout.cures import Hooks


def on_tensorflow(injection, module):
    module.PAUSE = {pause}
    injection.changed()


HOOKS = Hooks(tensorflow=on_tensorflow)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "tensorflow.py").write_text("PAUSE = 0.004\n__version__ = '2.21.0'\n")
    for what, pause in (("less", 0.002), ("more", 0.006)):
        folder = tmp_path / "plugins" / "cures" / f"sleep_{what}"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(CURE.format(what=what))
        (folder / "inject.py").write_text(INJECT.format(pause=pause))
    return tmp_path


def tune(place: Path, *words: str) -> subprocess.Popen[str]:
    levers = ("--lever", "sleep-less", "--lever", "sleep-more")
    return subprocess.Popen(
        [*SWIFT, "tune", *levers, "--budget", BUDGET, *words, "train.py"],
        cwd=place,
        env=environment(FLATOUT_PLUGINS=str(place / "plugins")),
        stderr=subprocess.PIPE,
        text=True,
    )


def rows(place: Path) -> list[dict[str, Any]]:
    files = list((place / ".flatout" / "cases").glob("tune-*/journal.jsonl"))
    return [json.loads(line) for line in files[0].read_text().splitlines()] if files else []


def left_behind(place: Path) -> list[bytes]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.readlink(entry / "cwd") == str(place):
                    found.append((entry / "cmdline").read_bytes())
            except OSError:
                continue
    return found


@pytest.mark.parametrize("moment", ["trial", pytest.param("scouted", marks=pytest.mark.exhaustive)])
def test_killed_and_resumed(moment: str, place: Path) -> None:
    running = tune(place)
    until(lambda: any(moment in row for row in rows(place)), 180)
    time.sleep(0.5)  # any moment of what comes next is as good: nothing waits for this one
    running.send_signal(signal.SIGKILL)
    running.wait()
    until(lambda: not left_behind(place), 10)
    known = [row["trial"] for row in rows(place) if "trial" in row]

    again = tune(place, "--resume", "--json", "case.json")
    told = again.communicate(timeout=500)[1]
    assert again.returncode == 0, told
    assert not left_behind(place)
    case = json.loads((place / "case.json").read_text())
    assert len(list((place / ".flatout" / "cases").iterdir())) == 1, "a second tune was begun"
    assert sum("scouted" in row for row in rows(place)) == 1
    kept = [row["trial"] for row in rows(place) if "trial" in row]
    for trial in known:
        assert trial in case["trials"]
        same = [one for one in kept if (one["levers"], one["stage"]) == (trial["levers"], trial["stage"])]
        assert same == [trial], "it was tried again"
    assert "sleep-less" in case["verdict"], told


def test_killed_together_with_its_watchdog(place: Path) -> None:
    """Trials that are stopped cannot see for themselves that nobody is left."""
    running = tune(place)
    until(lambda: any("trial" in row for row in rows(place)), 180)
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    watchdogs = [int(pid) for pid in children if b"watchdog.py" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert watchdogs
    for pid in (*watchdogs, running.pid):
        os.kill(pid, signal.SIGKILL)
    running.wait()
    until(lambda: not left_behind(place), 10)


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.exhaustive)])
def test_interrupted_by_the_user_or_a_scheduler(number: signal.Signals, place: Path) -> None:
    running = tune(place, "--json", "case.json")
    until(lambda: any("scouted" in row for row in rows(place)), 180)
    time.sleep(0.5)  # any moment after it is as good: nothing waits for this one
    running.send_signal(number)
    told = running.communicate(timeout=500)[1]
    assert running.returncode in (0, 3), told
    assert "Interrupted" in told
    assert (place / "case.json").exists()
    assert not left_behind(place)
