"""A thread that looks at the main thread's Python stack some dozens of times a second.

It shows which of the user's lines the time is spent in where TensorFlow's trace cannot: between the ops. It also notes
memory, CPU time and the speed of the machine, and opens the trace window by the clock when one call lasts very long.
"""

from __future__ import annotations

import contextlib
import os
import threading
from time import perf_counter, process_time, sleep  # a program may put its own into the module
from types import ModuleType
from typing import Any

from flatout.measure.processors import idle_seconds
from flatout.observe import own_threads
from flatout.observe.frames import line_of, stack_of
from flatout.observe.observer import Observer, Probe
from flatout.observe.window import LONG_CALL_SECONDS
from flatout.observe.yardstick import Yardstick
from flatout.source import users_code

INTERVAL = 0.04
SLOW_INTERVAL = 0.5
DEEPEST = 120
MOST_STACKS = 4000
MOST_MOMENTS = 2000
"""Looks whose moments are kept, evenly over the run: they tell the steps from the warm-up."""


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    if not observer.settings.sample:
        return
    sampler = Sampler(observer)
    observer.hooks.at_flush.append(sampler.write)
    sampler.start()


class Sampler:
    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.watched = threading.main_thread().ident
        self.counts: dict[Any, int] = {}
        self.samples = 0
        self.moments: list[tuple[float, Any]] = []
        """When one look of `apart` was taken, and what it saw."""
        self.apart = 1
        self.resources: list[list[float]] = []
        self.yardstick = Yardstick()

    def start(self) -> None:
        own_threads.start(self.run)

    def run(self) -> None:
        next_slow = 0.0
        while self.observer.active:
            sleep(INTERVAL)
            try:
                self.sample()
                now = perf_counter()
                if self.observer.streams and not self.observer.window.is_open:  # the trace is the program's alone
                    self.yardstick.take(now)
                if now >= next_slow:
                    next_slow = now + SLOW_INTERVAL
                    self.look_at_resources(now)
                    self.watch_long_call(now)
            except Exception as error:
                self.observer.note(f"the sampler stopped: {type(error).__name__}: {error}")
                return

    def sample(self) -> None:
        if not self.observer.streams or self.observer.spans.current.aside or self.observer.spans.at_work:
            return
        stack = stack_of(self.watched or 0, DEEPEST)
        self.samples += 1
        users: list[Any] = []
        tracing = False
        for code, instruction, _ in stack:
            if code.co_name == "_create_concrete_function":
                tracing = True
            if users_code.is_users(code):
                users.append((code, line_of(code, instruction)))
                if len(users) == 4:
                    break
        inner = stack[0][0] if stack else None
        key = (tuple(users), inner, tracing)
        if key in self.counts or len(self.counts) < MOST_STACKS:
            self.counts[key] = self.counts.get(key, 0) + 1
        if self.samples % self.apart == 0:
            self.moments.append((perf_counter(), key))
            if len(self.moments) > MOST_MOMENTS:
                del self.moments[::2]
                self.apart *= 2

    def look_at_resources(self, now: float) -> None:
        with contextlib.suppress(OSError, ValueError):
            with open("/proc/self/statm", "rb") as stream:
                pages = int(stream.read().split()[1])
            idle = idle_seconds()  # of all processors that it may use
            self.resources.append([now, pages * _PAGE, process_time(), *([] if idle is None else [idle])])
            if len(self.resources) > 4000:
                del self.resources[::2]

    def watch_long_call(self, now: float) -> None:
        """`for x in ds` inside a tf.function: no step ends for a long time, so open the window by the clock."""
        window = self.observer.window
        if not window.enabled or window.make_session is None:
            return
        if window.is_open:
            if window.opened_for is None and now - window.opened_at > 1.5:
                window.close("by the clock: one call lasts long")
            return
        if window.opened_times:
            return
        newest = max((stream.last for stream in list(self.observer.streams.values())), default=0.0)
        in_call = self.observer.ticks.call_since
        if in_call and now - in_call > LONG_CALL_SECONDS and newest < in_call:
            window.open(None)

    def write(self) -> None:
        rows = []
        at: dict[Any, list[float]] = {}
        for moment, key in list(self.moments):
            at.setdefault(key, []).append(round(moment, 3))
        for key, count in sorted(self.counts.items(), key=lambda item: -item[1])[:400]:
            users, inner, tracing = key
            rows.append(
                [
                    count,
                    [[users_code.absolute(c.co_filename), line, c.co_name, c.co_firstlineno] for c, line in users],
                    [inner.co_filename[-60:], inner.co_name] if inner else None,
                    tracing,
                    at.get(key, []),
                ]
            )
        self.observer.recorder.fact("samples", total=self.samples, interval=INTERVAL, rows=rows)
        self.observer.recorder.fact("resources", rows=self.resources)
        self.observer.recorder.fact("yardstick", by=self.yardstick.by, rows=self.yardstick.rows())


_PAGE = os.sysconf("SC_PAGE_SIZE")


PROBE = Probe("sampler", tensorflow=on_tensorflow)
