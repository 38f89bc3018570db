"""A lever that cannot be installed is shown as failed, with its error; the program runs on without it.

The program sleeps through its steps under a name that stands for TensorFlow, so that a whole tune takes seconds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from observed import environment, execute

PROGRAM = """
import sys, time
import tensorflow
observer = next((finder.observer for finder in sys.meta_path if hasattr(finder, "observer")), None)
def probe():
    return observer.streams.make("fit", "steps", "sleeps")
stream = probe()
for step in range(int(sys.argv[1])):
    began = time.perf_counter()
    time.sleep(0.004)
    observer.ticks.tick(stream, began, time.perf_counter())
print("the program came to its end")
"""

CURE = '''
"""Fails, for a test.

## What it changes
Nothing.
"""
from flatout.cures import Cure

CURE = Cure(equivalence="exact", side="host")
'''

BROKEN_HOOK = """
from flatout.cures import Hooks


def on_tensorflow(injection, module):
    raise ValueError("the wheel is square")


HOOKS = Hooks(tensorflow=on_tensorflow)
"""

NO_HOOKS = "HOOKS = None\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "tensorflow.py").write_text("__version__ = '2.21.0'\n")
    for name, inject in (("broken_hook", BROKEN_HOOK), ("no_hooks", NO_HOOKS)):
        folder = tmp_path / "plugins" / "cures" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(CURE)
        (folder / "inject.py").write_text(inject)
    return tmp_path


def test_a_tune_shows_the_error_in_the_row_of_the_trial(project: Path) -> None:
    words = ["--lever", "broken-hook", "--lever", "no-hooks", "--budget", "60s", "--json", "case.json"]
    variables = environment(FLATOUT_PLUGINS=str(project / "plugins"))
    command = [sys.executable, "-m", "flatout", "tune", *words, "train.py", "100000"]
    done = execute(command, project, env=variables)
    assert done.returncode == 0, done.stderr
    case = json.loads((project / "case.json").read_text())
    notes = {trial["levers"][0]: (trial["status"], trial["note"]) for trial in case["trials"]}
    status, note = notes["broken-hook"]
    assert status == "failed"
    assert "broken-hook could not be installed: ValueError: the wheel is square" in note
    status, note = notes["no-hooks"]
    assert status == "failed"
    assert "`HOOKS = Hooks(…)` was expected" in note
    assert "the wheel is square" in done.stderr
    assert "nothing to change" not in done.stderr


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_a_run_goes_on_without_the_lever_and_warns(project: Path, quiet: tuple[str, ...]) -> None:
    variables = environment(FLATOUT_PLUGINS=str(project / "plugins"))
    words = ["run", *quiet, "--with", "broken-hook", "--json", "case.json", "train.py", "50"]
    done = execute([sys.executable, "-m", "flatout", *words], project, env=variables)
    assert done.returncode == 0, done.stderr
    assert b"the program came to its end" in done.stdout
    assert "broken-hook could not be installed: ValueError: the wheel is square" in done.stderr
    case = json.loads((project / "case.json").read_text())
    warnings = [note["text"] for note in case["notes"] if note["level"] == "warning"]
    assert "broken-hook could not be installed: ValueError: the wheel is square" in warnings
    assert not [item for item in case["evidence"] if item["kind"] == "injected"]
