"""How much of the processors others have, from what Linux counts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flatout.measure import processors
from flatout.measure.processors import Mark, others_in, taken_by_others
from flatout.model.evidence.program import CpuUse
from waiting import until


def test_what_is_neither_used_nor_idle_was_taken() -> None:
    assert taken_by_others(10, 8, 7, 2) == pytest.approx(0.25)
    assert taken_by_others(10, 15, 7, 2) == 0.0  # clocks that do not quite agree
    assert taken_by_others(0, 0, 0, 2) == 0.0


def test_a_case_tells_what_others_had() -> None:
    assert others_in([CpuUse(0.5, cores=2, idle=1.0)]) == pytest.approx(0.25)
    assert others_in([CpuUse(0.5, cores=2)]) is None
    assert others_in([]) is None


def _cpu_seconds(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.alone
def test_a_busy_neighbour_is_seen() -> None:
    mark = Mark.now()
    neighbour = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    until(lambda: _cpu_seconds(neighbour.pid) >= 0.8)
    neighbour.kill()
    neighbour.wait()
    seen = mark.taken_since(0.0)
    assert seen > 0.5 / (os.cpu_count() or 1)
    assert mark.taken_since(1e6) == 0.0


def test_other_processors_do_not_count(monkeypatch, tmp_path) -> None:
    (tmp_path / "stat").write_text(
        "cpu  0 0 0 5000 0 0 0\ncpu0 0 0 0 1000 50 0 0\ncpu1 0 0 0 0 0 0 0\ncpu10 0 0 0 4000 0 0 0\n"
    )
    monkeypatch.setattr(processors, "_STAT", tmp_path / "stat")
    monkeypatch.setattr(processors, "usable", lambda: (0, 1))
    assert processors.idle_seconds() == pytest.approx(1050 / os.sysconf("SC_CLK_TCK"))
    monkeypatch.setattr(processors, "usable", lambda: (0, 2))  # one that the system does not list
    assert processors.idle_seconds() is None


def test_a_system_that_does_not_tell_is_no_trouble(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(processors, "_STAT", tmp_path / "not there")
    assert processors.idle_seconds() is None
    assert Mark.now().taken_since(0.0) == 0.0
