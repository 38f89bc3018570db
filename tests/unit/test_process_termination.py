"""What a scheduler's SIGTERM does."""

from __future__ import annotations

import signal
import subprocess
import sys

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

OF_ITS_OWN = """
import signal, threading
from flatout.process import termination
with termination.as_interrupt():
    pass
print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
signal.signal(signal.SIGTERM, lambda number, frame: print("its own handler"))
with termination.as_interrupt():
    signal.raise_signal(signal.SIGTERM)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
def work():
    with termination.as_interrupt():
        print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


def ended(program: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=60, check=False)
    return done.returncode, done.stdout


def test_the_first_interrupts_and_the_second_ends() -> None:
    assert ended(TWICE) == (-signal.SIGTERM, "saves\n")


def test_a_handler_of_somebody_else_and_other_threads_are_left_alone() -> None:
    assert ended(OF_ITS_OWN) == (0, "True\nits own handler\nTrue\n")
