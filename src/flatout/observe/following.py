"""Takes up the ticks that were put down: records them, and tells the trace window and the trial of steps.

`reading` decides afterwards which stream is the step. Here, while the program runs, the stream of the highest rank is
followed; one of lower rank takes over when it has fallen silent.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flatout.observe.device_clock import DeviceClock
    from flatout.observe.recorder import Recorder
    from flatout.observe.streams import Stream
    from flatout.observe.ticks import Ticks
    from flatout.observe.trial_state import TrialState
    from flatout.observe.window import Window

MOST_ROWS = 200_000
"""Ticks of one stream that are kept one by one; afterwards they are only counted."""
SILENCE = 1.0
"""Seconds after which a stream of lower rank takes over from a better one."""
FLUSH_SECONDS = 0.25
COUNT_SECONDS = 3.0
WAIT_SECONDS = 0.5
"""From one wait for the devices to the next. Each costs about what the host needs for a step."""
WAIT_STEPS = (0, 3, 11, 29)
"""Steps by which waits are late, in turn. A program that reads a value now and then waits for the device itself, and
takes most of its time there: waits that always came right after it would find nothing queued."""


def _nothing() -> None:
    pass


class StepFollower:
    def __init__(
        self,
        ticks: Ticks,
        recorder: Recorder,
        window: Window,
        trial: TrialState,
        write_counters: Callable[[], None],
        devices: DeviceClock,
    ) -> None:
        self.ticks = ticks
        self.recorder = recorder
        self.window = window
        self.trial = trial
        self.write_counters = write_counters
        self.devices = devices
        self._best = 0
        self._best_last = 0.0
        self._flushed = self._counted = self._waited = time.perf_counter()
        self._delays = itertools.cycle(WAIT_STEPS)
        self._delay = next(self._delays)
        """Steps that are still to be made before a wait that is due."""
        ticks.look = self.look
        ticks.at_once = self.look_at_once

    def look_at_once(self, stream: Stream, end: float, n: int) -> None:
        self._mark(stream, n)
        self.look()

    def look_soon(self, stream: Stream, end: float, n: int) -> None:
        """While the trace window is open: each step is marked in it, all else can wait a moment."""
        self._mark(stream, n)
        if end - self.ticks.looked > 0.02:
            self.look()

    def look(self) -> None:
        """Take up what `Ticks.tick` has put down. It is called in the midst of the program's step: what fails here is
        told in the case, and the program goes on unobserved. A trial ends: nothing would measure it any more."""
        try:
            self._take_up()
        except Exception as error:
            if self.trial.at_step is not None:
                raise
            self._give_up(error)

    def _mark(self, stream: Stream, n: int) -> None:
        try:
            self.window.mark(stream, n)
        except Exception as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self.ticks.at_once, self.ticks.look = None, _nothing
        self.ticks.stop()  # nobody takes up what would be put down
        self.ticks.rows.clear()
        self.window.wants_ticks = False
        with contextlib.suppress(Exception):
            self.window.close("steps are followed no longer")  # an open one would grow up to the program's end
        self.recorder.fact("lost", probe="steps", text=f"{type(error).__name__}: {error}")

    def _take_up(self) -> None:
        ticks, window, trial = self.ticks, self.window, self.trial
        rows = ticks.rows
        while True:
            try:
                row = rows.popleft()
            except IndexError:
                break
            stream, n, start, end, _, traced, _, _ = row
            stream.count += n
            stream.seen += 1
            if stream.kind in trial.not_steps or (stream.rank < self._best and end - self._best_last < SILENCE):
                continue  # another phase, or part of a step that is seen better: counting it is enough
            self._best = stream.rank
            self._best_last = ticks.looked = end
            if stream.seen <= MOST_ROWS:
                self.recorder.extend((stream.id, *row[1:]))
            if not stream.first:
                stream.first = start
            stream.last = end
            if window.wants_ticks:
                window.tick(stream, end, n, traced)
            if end - self._flushed > FLUSH_SECONDS:
                self._flush(end)
            if trial.at_step is not None:
                trial.at_step(stream, end, n)
        if self._wait_when_due() or trial.at_step is not None or window.impatient:
            ticks.at_once = self.look_at_once
        elif window.is_open:
            ticks.at_once = self.look_soon
        else:
            ticks.at_once = None

    def _wait_when_due(self) -> bool:
        """Wait for the devices when it is time. True while that is put off for some steps, which are looked at singly.

        Where steps are only queued, their times are right only up to such a wait (`reading/queued_steps.py`).
        """
        if self.ticks.looked - self._waited <= WAIT_SECONDS or self.trial.at_step is not None:
            return False
        if self.devices.queues and self._delay:
            self._delay -= 1
            return True
        self._waited = self.devices.record_wait(self.recorder)
        self._delay = next(self._delays)
        return False

    def _flush(self, now: float) -> None:
        self._flushed = now
        self.recorder.flush()
        if now - self._counted > COUNT_SECONDS:
            self._counted = now
            self.write_counters()
