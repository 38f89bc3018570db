"""What a scheduler's SIGTERM does."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from flatout.process import termination

TWICE = """
import signal
from flatout.process import termination
with termination.as_interrupt():
    try:
        signal.raise_signal(signal.SIGTERM)
    except KeyboardInterrupt:
        print("saves", flush=True)
        signal.raise_signal(signal.SIGTERM)
        print("goes on")
"""


def test_the_first_interrupts_and_the_second_ends() -> None:
    done = subprocess.run([sys.executable, "-c", TWICE], stdout=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "saves\n")


def test_what_was_set_before_stays() -> None:
    with termination.as_interrupt(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    got: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: got.append(number))
    try:
        with termination.as_interrupt():
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert got == [signal.SIGTERM]


def test_another_thread_leaves_signals_alone() -> None:
    inside: list[object] = []

    def work() -> None:
        with termination.as_interrupt():
            inside.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert inside == [signal.SIG_DFL]
