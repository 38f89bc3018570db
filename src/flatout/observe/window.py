"""The trace window: when TensorFlow's own profiler runs, for how long, and where its file goes.

It opens by itself once the steps are steady, stays open long enough to see some of them whole, and closes before
memory or disk suffers. Step marks (`train`, `step_num`) are written into the trace, so that XProf and TensorBoard
find the steps as well. The file goes where they expect it: `plugins/profile/<time>/<host>.xplane.pb`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from flatout.observe.recorder import Recorder

if TYPE_CHECKING:
    from flatout.observe.device_clock import DeviceClock
    from flatout.observe.settings import ObserveSettings
    from flatout.observe.spans import Spans
    from flatout.observe.streams import Stream

WARM_STEPS = 5
WARM_STEPS_AT_MOST = 12
WARM_SECONDS = 0.4
FULL_STEPS = 12
FULL_SECONDS = 0.8
LONGEST_SECONDS = 4.0
LONGEST_ASKED_SECONDS = 60.0
"""Of a window whose number of steps the user has given."""
MOST_STEPS = 400
MOST_WINDOWS = 3
LONG_CALL_SECONDS = 6.0
BEFORE_SECONDS = 0.6
"""Where steps run on a GPU: how long they are timed before the window opens. After a window the host's part of a step
took 0.35 ms where it had taken 0.2 ms (an H200)."""


class Window:
    def __init__(self, recorder: Recorder, settings: ObserveSettings, devices: DeviceClock, spans: Spans) -> None:
        self.recorder = recorder
        self.spans = spans
        self.devices = devices
        self.directory = os.path.join(recorder.directory, "trace")
        self.wants_ticks = settings.trace
        self.enabled = self.wants_ticks
        self.first_step = settings.window_start
        self.steps_wanted = settings.window_steps
        self.opened_for: Stream | None = None
        self.on_open: list[Any] = []
        self.on_close: list[Any] = []
        self.best = 0
        self.opened_times = 0
        self._session: Any = None
        self._mark: Any = None
        self._marked = 0
        self.opened_at = 0.0
        self._steps = 0
        self._last_trace = 0.0
        self._quiet_steps = 0
        self._warm_since = 0.0
        self._lock = threading.RLock()
        self.make_session: Any = None
        self.make_mark: Any = None

    # ── following the steps ──────────────────────────────────────────────────────────────────────────────────

    def tick(self, stream: Stream, now: float, n: int, traced: float) -> None:
        if self._session is not None:
            if stream is self.opened_for:
                self._steps += n
                elapsed = now - self.opened_at
                if self._full(elapsed):
                    self.close("enough steps seen")
            elif now - self.opened_at > LONGEST_SECONDS:
                self.close("long enough")
            return
        if self.make_session is None:
            return
        if stream.rank < self.best:
            return
        if self.opened_for is not None and stream.rank <= self.opened_for.rank:
            return
        if stream.rank > self.best:
            self.best = stream.rank
            self._quiet_steps = 0
        self._quiet_steps = self._quiet_steps + 1 if traced == self._last_trace else 0
        self._last_trace = traced
        if self._warm(stream, now) and self._timed(stream, now):
            self.open(stream)

    def _warm(self, stream: Stream, now: float) -> bool:
        if self.first_step is not None:
            return stream.count >= self.first_step
        if stream.count >= 8 * stream.seen and (stream.seen >= 3 or now - stream.first > 2.0):
            return True  # many steps a call: the first calls were the warm-up
        if stream.seen < 2:
            return False
        if stream.seen >= WARM_STEPS_AT_MOST or (stream.seen >= 2 and now - stream.first > 4.0):
            return now - stream.first > WARM_SECONDS or stream.seen >= 50
        return stream.seen >= WARM_STEPS and self._quiet_steps >= 3 and now - stream.first > WARM_SECONDS

    def _timed(self, stream: Stream, now: float) -> bool:
        """Whether the steps were timed without the profiler for long enough. On a CPU it takes nothing from them."""
        if self.first_step is not None or not self.devices.queues:
            return True
        if not self._warm_since:
            self._warm_since = self.devices.record_wait(self.recorder)
        return now - self._warm_since > BEFORE_SECONDS

    def _full(self, elapsed: float) -> bool:
        if self.steps_wanted is not None:
            return self._steps >= self.steps_wanted or elapsed > LONGEST_ASKED_SECONDS
        if elapsed > LONGEST_SECONDS and self._steps >= 2:
            return True
        return (self._steps >= FULL_STEPS and elapsed > FULL_SECONDS) or self._steps >= MOST_STEPS

    # ── the profiler session ─────────────────────────────────────────────────────────────────────────────────

    def open(self, stream: Stream | None) -> None:
        with self.spans.of_flatout(), self._lock:
            if self._session is not None or self.opened_times >= MOST_WINDOWS or self.make_session is None:
                return
            self.devices.record_wait(self.recorder)
            try:
                with _quiet_logs():
                    session = self.make_session()
                    session.start(self.directory, {})
            except Exception as error:
                self.enabled = self.wants_ticks = False
                self.recorder.fact("note", text=f"no trace: the profiler did not start ({error})")
                return
            self._call(self.on_open, "before the window")
            self._session = session
            self.opened_times += 1
            self._steps = 0
            self.opened_for = stream
            self.opened_at = time.perf_counter()
            self.recorder.fact(
                "window-open",
                stream=stream.id if stream else None,
                step=stream.count if stream else None,
                at=self.opened_at,
            )
            if stream is not None:
                self._marked = stream.count
                self.mark(stream, 0)

    def mark(self, stream: Stream, n: int) -> None:
        """Say in the trace that `n` steps have ended."""
        if self._session is None or stream is not self.opened_for:
            return
        if self._mark is not None:
            self._mark.Stop()
        self._marked += n
        self._mark = self.make_mark("train", step_num=self._marked, _r=1)

    def close(self, why: str) -> None:
        with self.spans.of_flatout(), self._lock:
            session, self._session = self._session, None
            if session is None:
                return
            if self._mark is not None:
                self._mark.Stop()
                self._mark = None
            began = time.perf_counter()
            stream = self.opened_for
            try:
                with _quiet_logs():
                    session.export_to_tb()  # `stop()` would give the older trace-viewer form
                path = self._newest()
            except Exception as error:
                self.recorder.fact("note", text=f"the trace was lost: {error}")
                path = None
            if self.opened_times >= MOST_WINDOWS or (stream is not None and stream.kind == "fit"):
                self.wants_ticks = False
            # Only now: what is written here (lines of ops) is not part of any measured step.
            self._call(self.on_close, "after the window")
            self.recorder.fact(
                "window-close",
                stream=stream.id if stream else None,
                step=stream.count if stream else None,
                opened=self.opened_at,
                at=began,
                done=time.perf_counter(),
                path=path,
                why=why,
                steps=self._steps,
            )

    def _call(self, hooks: list[Any], when: str) -> None:
        for hook in hooks:
            try:
                hook()
            except Exception as error:
                self.recorder.fact("note", text=f"{when}: {type(error).__name__}: {error}")

    @property
    def impatient(self) -> bool:
        """Whether a step must be handled as soon as it ends: the first window opens and a counted one closes on it."""
        counts = self._session is not None and self.steps_wanted is not None
        return self.wants_ticks and (counts or not self.opened_times)

    @property
    def is_open(self) -> bool:
        return self._session is not None

    def _newest(self) -> str | None:
        """Path of the file just written, relative to the recording."""
        runs = os.path.join(self.directory, "plugins", "profile")
        files = [
            os.path.join(runs, run, name) for run in os.listdir(runs) for name in os.listdir(os.path.join(runs, run))
        ]
        newest = max(files, key=os.path.getmtime, default=None)
        return os.path.relpath(newest, self.recorder.directory) if newest else None


@contextlib.contextmanager
def _quiet_logs() -> Iterator[None]:
    """Keep the profiler's own log lines out of the program's stderr, and nothing else.

    They are written by C++ straight to descriptor 2. What arrives there meanwhile is put aside and handed on
    afterwards without those lines.
    """
    try:
        sys.stderr.flush()
        kept = os.dup(2)
        aside = os.memfd_create("flatout")  # in memory: a full disk must not swallow what the program says
    except Exception:  # no stderr, or one of the program's own making
        yield
        return
    os.dup2(aside, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.lseek(aside, 0, os.SEEK_SET)
        with open(aside, "rb") as said:
            lines = said.read().splitlines(keepends=True)
        ours = (b"profiler_session.cc", b"save_profile.cc")
        rest = b"".join(line for line in lines if not any(name in line for name in ours))
        with contextlib.suppress(OSError):
            while rest:
                rest = rest[os.write(2, rest) :]
