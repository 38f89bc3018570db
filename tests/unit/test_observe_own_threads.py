"""A program that forks hears nothing of the observer's threads, and is warned of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings

import pytest

from flatout.observe import own_threads
from waiting import until

WARNING = "This process (pid=12) is multi-threaded, use of fork() may lead to deadlocks in the child."


def shown(monkeypatch: pytest.MonkeyPatch, ours: set[int], others: list[int], text: str = WARNING) -> int:
    """How many forks warn, beside so many other threads at each."""
    monkeypatch.setattr(own_threads, "_ours", ours)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for count in others:
            monkeypatch.setattr(own_threads, "_others", lambda count=count: count)
            own_threads._before_fork()
            warnings.warn(text, DeprecationWarning, stacklevel=1)
    return len(seen)


def test_a_fork_warns_of_the_threads_of_the_program_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, {7}, [0]) == 0
    assert shown(monkeypatch, {7}, [1]) == 1
    assert shown(monkeypatch, {7}, [0, 0, 2, 0]) == 1
    assert shown(monkeypatch, set(), [0]) == 1
    assert shown(monkeypatch, {7}, [0], "fork() is old") == 1


@pytest.mark.skipif(not os.path.isdir(own_threads._TASKS), reason="no list of threads here")
def test_the_threads_of_the_observer_are_told_from_others() -> None:
    begun, over = threading.Event(), threading.Event()

    def run() -> None:
        begun.set()
        over.wait(60)

    known, before = set(own_threads._ours), own_threads._others()
    own_threads.start(run)
    try:
        assert begun.wait(60)
        assert len(own_threads._ours - known) == 1
        assert own_threads._others() <= before
    finally:
        over.set()
    until(lambda: not own_threads._ours - known)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="no fork warns before Python 3.12")
def test_a_program_that_forks_is_not_warned() -> None:
    program = """
import os, threading, time
from flatout.observe import own_threads
own_threads.start(lambda: time.sleep(60))
while not own_threads._ours:
    time.sleep(0.01)
if os.fork() == 0:
    os._exit(0)
os.wait()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
