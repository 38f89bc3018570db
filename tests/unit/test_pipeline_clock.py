"""The clock that leaves out what other processes took."""

from __future__ import annotations

import time

from flatout.pipeline import clock
from flatout.pipeline.clock import Clock


def test_computing_is_cpu_and_waiting_is_not():
    began = Clock.now()
    end = time.process_time() + 0.03
    while time.process_time() < end:
        pass
    busy = began.passed()
    assert busy.cpu >= 0.03
    assert busy.wall >= 0.99 * busy.cpu  # two clocks, read one after the other
    began = Clock.now()
    time.sleep(0.03)  # the waiting that is to be told from computing
    idle = began.passed()
    assert idle.cpu < idle.wall


def test_time_in_the_queue_is_taken_out(monkeypatch):
    counted = iter([{"1": 0, "2": 5_000_000}, {"1": 400_000_000, "2": 5_000_000, "3": 100_000_000}])
    monkeypatch.setattr(clock, "_queued", lambda: next(counted))
    moments = iter([10.0, 11.0])
    monkeypatch.setattr(clock.time, "perf_counter", lambda: next(moments))
    used = iter([1.0, 1.2])
    monkeypatch.setattr(clock.time, "process_time", lambda: next(used))
    found = Clock.now().passed()
    assert round(found.wall, 6) == 0.5
    assert round(found.cpu, 6) == 0.2


def test_where_nobody_counts_the_wall_is_the_wall(monkeypatch):
    monkeypatch.setattr(clock, "TASKS", "/nowhere")
    began = Clock.now()
    time.sleep(0.01)  # the time that is to be measured
    assert began.passed().wall >= 0.01
