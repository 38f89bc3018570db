"""Step times where steps are only queued on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from flatout.observe.reading.queued_steps import spread


def run_of(steps: int, host: float, device: float, wait_after: int) -> tuple[np.ndarray, np.ndarray, list]:
    """Times, ends and waits as seen by the host, which needs `host` seconds for a step of `device` seconds."""
    now = done = 0.0
    times, ends, waits = [], [], []
    for step in range(1, steps + 1):
        began = ends[-1] if ends else 0.0
        now += host
        done = max(done, now) + device
        times.append(now - began)
        ends.append(now)
        if step % wait_after == 0:
            waits.append((now, done))
            now = done
    return np.array(times), np.array(ends), waits


def test_each_step_gets_what_the_device_needs() -> None:
    times, ends, waits = run_of(100, 0.001, 0.020, 25)
    assert np.median(times) == pytest.approx(0.001), "what the host alone sees"
    found = spread(times, np.ones(100, np.int64), ends, waits)
    assert found == pytest.approx(np.full(100, 0.020), rel=0.05)


def test_steps_after_the_last_wait_get_the_time_of_those_before() -> None:
    times, ends, waits = run_of(90, 0.001, 0.020, 25)
    assert spread(times, np.ones(90, np.int64), ends, waits)[75:] == pytest.approx(np.full(15, 0.020), rel=0.05)


def test_a_host_that_is_never_ahead_keeps_its_times() -> None:
    times = np.array([0.020, 0.030, 0.025, 0.021])
    ends = np.cumsum(times)
    waits = [(float(ends[1]), float(ends[1]) + 1e-5), (float(ends[3]), float(ends[3]) + 1e-5)]
    assert spread(times, np.ones(4, np.int64), ends, waits) == pytest.approx(times, rel=1e-2)


def test_without_waits_nothing_changes() -> None:
    times = np.array([0.1, 0.2])
    assert spread(times, np.array([1, 4]), np.cumsum(times), []) is times
