"""What is killed and does not die is waited for no longer than a moment: what was found must not be lost with it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from flatout.process import launch, watchdog
from flatout.process.launch import Command, run_until
from flatout.process.watchdog import Tree, Watchdog


def test_a_watchdog_that_takes_long_goes_on_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "CLOSE_SECONDS", 0.1)
    made = Watchdog()
    os.kill(made._process.pid, signal.SIGSTOP)
    try:
        made.close()
    finally:
        os.kill(made._process.pid, signal.SIGCONT)
    assert made._process.wait(10) == 0


def test_a_program_that_cannot_be_killed_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for a disk that is gone, for example: no signal reaches it."""
    monkeypatch.setattr(launch, "KILLED_SECONDS", 0.1)
    left: list[Tree] = []
    kill = Tree.kill
    monkeypatch.setattr(Tree, "kill", lambda tree: left.append(tree))
    made = Watchdog()
    try:
        command = Command(["sleep", "60"], dict(os.environ))
        assert run_until(command, tmp_path / "output.txt", made, time.monotonic()) is None
    finally:
        (tree,) = left
        kill(tree)
        os.waitpid(tree.group, 0)
        made.close()
