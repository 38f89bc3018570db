"""A worker with tasks of its own, forked and started: answers, errors, limits, death."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flatout.process.fork_server import can_fork
from flatout.process.watchdog import Watchdog
from flatout.process.worker import Worker, WorkFailed, worker_server

TASKS = """
import os, sys, time
from flatout.model.errors import FlatoutError

class NotNeeded(FlatoutError): pass

class Tasks:
    NEEDLESS = (NotNeeded,)
    def double(self, number): print("printed"); return {"double": 2 * number, "pid": os.getpid()}
    def fail(self): raise ValueError("no\\n luck " + "x" * 2000)
    def refuse(self): raise FlatoutError("refused")
    def skip(self): raise NotNeeded("nothing to do")
    def leave(self): sys.exit(3)
    def crash(self): print("about to crash", flush=True); os.abort()
    def vanish(self): os._exit(4)
    def wait(self): time.sleep(100)
    def grow(self): self.kept = bytearray(os.urandom(1 << 20) * 300); time.sleep(100)
"""


@pytest.fixture
def watchdog():
    made = Watchdog()
    yield made
    made.close()


@pytest.fixture(params=["started", "forked"])
def worker(request, tmp_path: Path, watchdog, monkeypatch):
    (tmp_path / "toy_tasks.py").write_text(TASKS)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    monkeypatch.setenv("PYTHONPATH", path)
    server = None
    if request.param == "forked":
        if not can_fork():
            pytest.skip("this system has no process descriptors")
        server = worker_server(watchdog, tmp_path / "logs" / "server.txt", os.environ, ("toy_tasks",))
    made = Worker("toy_tasks:Tasks", tmp_path / "logs" / "worker.txt", watchdog, server)
    assert (server is None) == isinstance(made.process, subprocess.Popen)
    yield made
    made.end()
    if server is not None:
        server.close()


def test_tasks_are_answered_one_after_the_other(worker, tmp_path):
    first, second = worker.ask("double", 60, number=21), worker.ask("double", 60, number=1.5)
    assert (first["double"], second["double"]) == (42, 3.0)
    assert first["pid"] == second["pid"] == worker.process.pid
    assert "printed" in (tmp_path / "logs" / "worker.txt").read_text()
    assert worker.peak_bytes > 0


@pytest.mark.parametrize(
    ("task", "how", "text"),
    [
        ("fail", "failed", "ValueError: no luck x"),
        ("refuse", "failed", "refused"),
        ("skip", "needless", "nothing to do"),
        ("leave", "failed", "SystemExit: 3"),
        ("unheard_of", "failed", "AttributeError"),
    ],
)
def test_an_exception_is_an_answer_and_the_worker_goes_on(worker, task, how, text):
    with pytest.raises(WorkFailed, match=text) as raised:
        worker.ask(task, 60)
    assert raised.value.how == how
    assert len(str(raised.value)) < 700
    assert worker.ask("double", 60, number=2)["double"] == 4


@pytest.mark.parametrize(("task", "text"), [("crash", r"crashed with SIGABRT.*"), ("vanish", "ended with exit code 4")])
def test_a_worker_that_dies_says_how(worker, task, text):
    with pytest.raises(WorkFailed, match=text) as raised:
        worker.ask(task, 60)
    assert raised.value.how == "failed"
    assert not worker.alive
    with pytest.raises(WorkFailed):
        worker.ask("double", 60, number=1)


def test_a_worker_that_takes_too_long_is_ended(worker):
    worker.ask("double", 60, number=1)  # it has started
    with pytest.raises(WorkFailed, match="no answer") as raised:
        worker.ask("wait", 0.3)
    assert raised.value.how == "timeout"
    assert not worker.alive


def test_a_worker_that_takes_too_much_memory_is_ended(worker):
    worker.ask("double", 60, number=1)
    with pytest.raises(WorkFailed, match=r"more than 0\.2 GiB") as raised:
        worker.ask("grow", 60, memory_limit=200 << 20)
    assert raised.value.how == "memory"
    assert not worker.alive


def test_a_worker_started_on_its_own_runs_the_same_python(worker):
    assert Path(f"/proc/{worker.process.pid}/exe").resolve() == Path(sys.executable).resolve()
