"""Looking at another thread's stack must neither stop nor crash the process."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading

import pytest

from flatout.observe.frames import line_of, stack_of

LOCALS_OF_THREADS = """
import gc, sys, threading
from flatout.observe.frames import stack_of

for _ in range(200):
    gc.disable()
    cycle = [threading.local()]
    cycle.append(cycle)
    del cycle
    gc.set_threshold(1)
    gc.enable()  # collects at the next object that is made
    assert stack_of(threading.get_ident(), 10)
print("came through")
"""
"""Before Python 3.12, `sys._current_frames` alone stands still here for ever."""

FRAMES_THAT_RETURN = """
import gc, random, sys, threading, time
from flatout.observe.frames import stack_of

class Slow:
    def __del__(self):
        time.sleep(0.0002)  # other threads run

made = {}
for size in range(1, 40):
    names = ", ".join(f"v{number}" for number in range(size))
    exec(f"def f{size}(n, g):\\n    {names}, = range({size})\\n    return n if n == 0 else g(n - 1, g)", made)

def work():
    while not ended:
        first, other = (made[f"f{random.randint(1, 39)}"] for _ in "ab")
        first(40, other)
        sorted(range(30), key=lambda value: [value] * 3)

ended = False
worker = threading.Thread(target=work)
worker.start()
gc.set_threshold(1)
for _ in range(1000):
    gc.disable()
    cycle = [Slow()]
    cycle.append(cycle)
    del cycle
    gc.enable()
    stack_of(worker.ident, 100)
ended = True
worker.join()
print("came through")
"""
"""Before Python 3.12, a loop over `frame.f_back` crashes here in most runs."""


@pytest.mark.parametrize("program", [LOCALS_OF_THREADS, FRAMES_THAT_RETURN])
def test_it_comes_back_whatever_the_collector_does(program):
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.stdout == "came through\n", ended.stderr


@pytest.mark.parametrize("collects", [True, False])
def test_the_collector_stays_as_it_was(collects):
    was = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        assert stack_of(threading.get_ident(), 10)
        assert gc.isenabled() == collects
    finally:
        (gc.enable if was else gc.disable)()


def test_a_collector_that_the_program_switches_off_meanwhile_stays_off():
    switched = []

    def switch_off(frame, event, argument):  # as another thread may, between any two steps of Python code
        if event == "c_return" and argument is gc.isenabled:
            gc.disable()
            switched.append(frame)

    was = gc.isenabled()
    gc.enable()
    try:
        sys.setprofile(switch_off)
        stack_of(threading.get_ident(), 10)
        sys.setprofile(None)
        assert gc.isenabled() == (not switched)
    finally:
        sys.setprofile(None)
        (gc.enable if was else gc.disable)()


def test_the_functions_and_lines_of_another_thread_from_the_innermost_outwards():
    begun, over = threading.Event(), threading.Event()

    def inner(depth):
        if depth:
            return inner(depth - 1)
        begun.set()
        return over.wait(60)

    worker = threading.Thread(target=inner, args=(20,))
    worker.start()
    begun.wait(60)
    stack = stack_of(worker.ident, 100)
    over.set()
    worker.join()
    ours = [(code, instruction) for code, instruction, names in stack if names is globals()]
    first = inner.__code__.co_firstlineno
    assert [code.co_name for code, _ in ours] == ["inner"] * 21
    assert [line_of(*one) - first for one in ours][1:] == [2] * 20


def test_no_more_frames_than_asked_for_and_none_of_a_thread_that_is_gone():
    worker = threading.Thread(target=str)
    worker.start()
    worker.join()
    assert stack_of(worker.ident, 10) == []
    assert len(stack_of(threading.get_ident(), 3)) == 3
