"""Settings that a child cannot understand: one line on stderr, and the program runs unobserved."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from flatout.process.messages import encode
from flatout.trial.child import gate as gates
from flatout.trial.child.gate import Pipes
from flatout.trial.launcher import environment_for
from flatout.trial.messages import Go, ProgramEnded
from flatout.trial.settings import ChildSettings, GateSettings, TrialSettings

PROGRAM = "import sys; print('ran', any(hasattr(finder, 'observer') for finder in sys.meta_path)); sys.exit(3)"


def run(directory: Path, change: object) -> subprocess.CompletedProcess[str]:
    variables = environment_for(ChildSettings(str(directory)))
    if change is not None:
        text = change if isinstance(change, str) else json.dumps({**json.loads(variables["FLATOUT_OBSERVE"]), **change})
        variables["FLATOUT_OBSERVE"] = text
    return subprocess.run([sys.executable, "-c", PROGRAM], env=variables, capture_output=True, text=True, timeout=60)


def test_settings_that_are_valid_observe_the_program(tmp_path: Path) -> None:
    done = run(tmp_path, None)
    assert (done.returncode, done.stdout, done.stderr) == (3, "ran True\n", "")
    assert (tmp_path / "facts.jsonl").exists()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ("not JSON", "ChildSettings"),
        ('{"type": "ChildSettings"}', "ChildSettings.directory is missing"),
        ({"colour": "blue"}, "there is no field 'colour'"),
        ({"levers": "xla"}, "ChildSettings.levers: expected a list"),
        ({"observe": {"type": "ObserveSettings", "trace": "yes"}}, "ChildSettings.observe.trace: expected bool"),
        ({"trial": {"type": "TrialSettings", "seed": 1}}, "ChildSettings.trial.role is missing"),
    ],
)
def test_invalid_settings_leave_the_program_unobserved_and_unharmed(tmp_path: Path, change: object, field: str) -> None:
    done = run(tmp_path, change)
    assert (done.returncode, done.stdout) == (3, "ran False\n")
    assert field in done.stderr
    assert "running unobserved" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "facts.jsonl").exists()


def test_the_settings_of_a_gate_are_what_the_child_reads() -> None:
    role = GateSettings(5, 6, 7, least_step="predict", not_steps=("fit",))
    settings = ChildSettings("/tmp/case", levers=("xla",), trial=TrialSettings(role, seed=None))
    text = environment_for(settings, {"PYTHONPATH": "/theirs"})["FLATOUT_OBSERVE"]
    assert json.loads(text)["trial"]["role"]["not_steps"] == ["fit"]


@pytest.mark.parametrize(
    ("line", "left", "steps"),
    [(encode(Go(7)) + "\n", [], 7), ("", [0], 0), (encode(Go(7)), [0], 0), ('{"type": "Went"}\n', [1], 0)],
    ids=["go", "the parent is gone", "half a line", "another message"],
)
def test_a_gate_goes_on_only_when_it_is_told_to(line, left, steps, monkeypatch, capfd) -> None:
    ends: list[int] = []

    def leave(code: int) -> None:
        ends.append(code)
        raise SystemExit

    monkeypatch.setattr(gates, "_leave", leave)
    read, commands = os.pipe()
    answers, write = os.pipe()
    os.write(commands, line.encode())
    os.close(commands)
    pipes = Pipes(read, write)
    try:
        if left:
            with pytest.raises(SystemExit):
                pipes.wait_for_go()
        else:
            assert pipes.wait_for_go().steps == steps
        pipes.say_end(ProgramEnded(3))
        assert os.read(answers, 100) == encode(ProgramEnded(3)).encode() + b"\n"
    finally:
        pipes.reading.close()
        os.close(answers)
        os.close(write)
    assert ends == left
    assert ("expected Go" in capfd.readouterr().err) == (left == [1])
