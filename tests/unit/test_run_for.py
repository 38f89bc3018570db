"""`flatout run --for`: the case is there while the program goes on, which is left alone from then on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import flatout
from flatout import store
from flatout.model.case import Case

PROGRAM = """
import glob, sys, time

end = time.monotonic() + 120
while time.monotonic() < end and not glob.glob(".flatout/cases/*/case.json"):
    time.sleep(0.05)
finders = [type(finder).__name__ for finder in sys.meta_path]
print("seen" if time.monotonic() < end else "not seen", "ProbeInstaller" in finders)
sys.exit(7)
"""


def run(directory: Path, *words: str, source: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    (directory / "program.py").write_text(source)
    command = [sys.executable, "-m", "flatout", "run", *words, "program.py"]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=200)


def case_in(directory: Path) -> Case:
    return store.load(store.locate(None, directory / store.HOME))


def test_the_case_is_made_when_the_time_is_over_and_the_program_goes_on(tmp_path: Path) -> None:
    done = run(tmp_path, "--for", "1s")
    assert (done.returncode, done.stdout) == (7, "seen False\n"), done.stderr
    case = case_in(tmp_path)
    assert any("the program went on after that" in note.text for note in case.notes)
    assert [note.level for note in case.notes if "--for" in note.text] == ["warning"], "no step was seen until then"
    assert case.program.exit_code is None
    assert case.run is not None
    assert abs(sum(part.seconds for part in case.run.parts) - case.run.seconds) < 1e-6
    assert len(list((tmp_path / ".flatout" / "cases").iterdir())) == 1


def test_a_program_that_ends_before_is_observed_to_its_end(tmp_path: Path) -> None:
    done = run(tmp_path, "--for", "1h", source="print('short')\n")
    assert (done.returncode, done.stdout) == (0, "short\n")
    case = case_in(tmp_path)
    assert case.program.exit_code == 0
    assert not any("went on" in note.text for note in case.notes)


def test_times_are_typed_as_in_every_option(tmp_path: Path) -> None:
    done = run(tmp_path, "--for", "soon")
    assert done.returncode == 2
    assert "--for takes a time such as 90s, 10m or 1h, not 'soon'" in done.stderr
    refused = run(tmp_path, "--for", "1m", "--flame")
    assert refused.returncode == 2
    assert "--for ends observing before the program ends" in refused.stderr


def test_python_takes_the_same_words(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "program.py").write_text("print('short')\n")
    monkeypatch.chdir(tmp_path)
    assert flatout.run("program.py", observe_for="10m", show=False).program.exit_code == 0
