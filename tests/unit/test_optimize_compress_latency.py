"""Models side by side: each is called in every round. What is called here are counters and a clock that is made up."""

from __future__ import annotations

import pytest

from flatout.optimize.compress import latency


def test_each_is_called_in_every_round_and_as_often_as_a_block_needs(monkeypatch):
    monkeypatch.setattr(latency, "BLOCK_SECONDS", 0.0)  # one call in a block
    calls = [0, 0, 0]

    def counting(number: int):
        def call() -> None:
            calls[number] += 1

        return call

    found = latency.rounds_of([counting(number) for number in range(3)], 7)
    assert [len(times) for times in found] == [7, 7, 7]
    assert calls == [latency.WARM_CALLS + 1 + 7] * 3
    assert all(milliseconds > 0 for times in found for milliseconds in times)


def test_two_have_an_interval_by_the_clock(monkeypatch):
    clock = FakeClock()
    monkeypatch.setattr(latency, "time", clock)
    found = latency.side_by_side(lambda: clock.advance(0.002), lambda: clock.advance(0.001))
    assert (found.ratio, found.low, found.high) == pytest.approx((2.0, 2.0, 2.0))


class FakeClock:
    now = 0.0

    def perf_counter(self) -> float:
        return self.now

    process_time = perf_counter

    def advance(self, seconds: float) -> None:
        self.now += seconds
