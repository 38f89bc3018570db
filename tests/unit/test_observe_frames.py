"""Looking at another thread's stack must not stop the process."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading

import pytest

from flatout.observe.frames import frame_of

LOOKS = """
import gc, sys, threading
from flatout.observe.frames import frame_of

for _ in range(200):
    gc.disable()
    cycle = [threading.local()]
    cycle.append(cycle)
    del cycle
    gc.set_threshold(1)
    gc.enable()  # collects at the next object that is made
    found = {look}
    assert found is not None
print("came through")
"""


def test_it_comes_back_where_a_local_of_a_thread_is_garbage():
    """Before Python 3.12, `sys._current_frames` alone stands still here for ever."""
    program = LOOKS.format(look="frame_of(threading.get_ident())")
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.stdout == "came through\n", ended.stderr


@pytest.mark.parametrize("collects", [True, False])
def test_the_collector_stays_as_it_was(collects):
    was = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        frame = frame_of(threading.get_ident())
        assert gc.isenabled() == collects
    finally:
        (gc.enable if was else gc.disable)()
    assert frame is not None
    assert frame.f_code.co_name in ("frame_of", test_the_collector_stays_as_it_was.__name__)
