"""The gate at which a trial waits: it lets some steps through, times them, and stops the program until the next word.

Trials of one program live side by side and only one of them runs at a time. A gate sits where a step ends. The
coordinator writes `{"do": "go", "steps": 12}` into a pipe; the gate times the next steps, answers with one line, and
blocks in a read. When the coordinator is gone, the read ends, and so does the trial.

A step is an update of the optimizers where there are any: a lever may turn two calls into one, but not two updates.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flatout.observe.observer import Observer, Stream

WARM_TICKS = 5
WARM_TICKS_AT_MOST = 25
WARM_SECONDS = 0.4
WARM_SECONDS_AT_MOST = 6.0
FILLING_SECONDS = 20.0
"""How long a program is given to come to its second epoch, where it is measured from there on."""
QUIET_TICKS = 3
FEWEST_TICKS = 3
"""Ticks of a block: the first is dropped, so that fewer would leave nothing to compare."""

_leave = os._exit


class Gate:
    def __init__(self, observer: Observer, settings: dict[str, Any], numbers: Any) -> None:
        self.observer = observer
        self.numbers = numbers
        self.reading = os.fdopen(settings["read"], "r", encoding="ascii")
        self.writing = settings["write"]
        os.set_inheritable(settings["read"], False)
        os.set_inheritable(settings["write"], False)
        _end_with(settings.get("coordinator"))
        self.needed: int = settings.get("priority", 0)
        observer.passing = frozenset(settings.get("passing", ()))
        self.fills: bool = settings.get("fills", False)
        self.warm = False
        self.steps = 0
        self._ticks = 0
        self._kind = 0
        self._began = 0.0
        self._quiet = 0
        self._traced = 0.0
        self._since = 0
        self._until = 0
        self._last = 0.0
        self._times: list[float] = []
        self._counts: list[int] = []
        self._epochs = 0
        self._begun = 0
        self._starts: list[int] = []
        self._epoch_began: int | None = None
        self._epoch_steps = 0
        self._updates = 0
        self._cpu = 0.0
        self._lock = threading.Lock()
        self._process = os.getpid()
        atexit.register(self._tell_end)

    def tick(self, stream: Stream, end: float, n: int) -> None:
        """One call into TensorFlow that makes `n` steps has ended. On the program's hot path."""
        if stream.priority < self._kind or stream.priority < self.needed:
            return
        if stream.priority > self._kind:  # what was counted so far was not the step
            self._kind, self._ticks, self._began, self._quiet = stream.priority, 0, end, 0
        self._ticks += 1
        if self.observer.epochs != self._epochs:
            self._begin_epoch()
        self.steps += n
        if self.warm:
            self._times.append(end - self._last)
            self._counts.append(n)
            self._last = end
        if self.numbers.wanted:
            self.numbers.tick(self._count())
            self._last = time.perf_counter()  # looking at the numbers is no part of the next step
        if self.warm:
            if self._ticks < FEWEST_TICKS or self.steps < self._until:
                return
            self._report(end)
        else:
            if not self._is_warm(end):
                return
            self.warm = True
            self._say("warm", steps=self.steps, seconds=end - self._began)
        self._wait()

    def _is_warm(self, now: float) -> bool:
        self._quiet = self._quiet + 1 if self.observer.trace == self._traced else 0
        self._traced = self.observer.trace
        injections = self.observer.injections
        if injections is not None and not injections.ready:
            return False
        elapsed = now - self._began
        if self.fills and self._begun < 2 and elapsed < FILLING_SECONDS:
            return False
        if self._ticks < WARM_TICKS:
            return self._ticks >= 3 and elapsed > WARM_SECONDS_AT_MOST
        steady = self._quiet >= QUIET_TICKS and elapsed > WARM_SECONDS
        return steady or self._ticks >= WARM_TICKS_AT_MOST or elapsed > WARM_SECONDS_AT_MOST

    def _begin_epoch(self) -> None:
        """The program has begun a dataset anew before the step that has just ended."""
        self._epochs = self.observer.epochs
        self._begun += 1
        if self._epoch_began is not None:
            self._epoch_steps = self.steps - self._epoch_began
        self._epoch_began = self.steps
        self._starts.append(len(self._times))

    # ── the pipe ─────────────────────────────────────────────────────────────────────────────────────────────

    def _report(self, end: float) -> None:
        cpu = time.process_time() - self._cpu
        updates = self._count() - self._updates or self.steps - self._since  # none where computing was left out
        epoch = {"steps": self._epoch_steps, "starts": self._starts}
        self._say("block", times=self._times, counts=self._counts, steps=updates, cpu=cpu, epoch=epoch)

    def _say(self, what: str, **facts: Any) -> None:
        injections = self.observer.injections
        facts["levers"] = injections.report() if injections is not None else {}
        self.numbers.write()  # before the answer: whoever has it may end this process
        line = json.dumps({"say": what, **facts}) + "\n"
        try:
            os.write(self.writing, line.encode("ascii"))
        except OSError:
            _leave(1)

    def _tell_end(self) -> None:
        """The program has come to its end: how many steps it makes is worth knowing before it is started again."""
        if os.getpid() == self._process:
            with contextlib.suppress(OSError):
                os.write(self.writing, json.dumps({"say": "end", "steps": self.steps}).encode("ascii") + b"\n")

    def _wait(self) -> None:
        self.observer.held += 1
        with self._lock:
            line = self.reading.readline()
            word = json.loads(line) if line.endswith("\n") else {"do": "end"}
            if word["do"] != "go":
                _leave(0)
        self._times, self._counts, self._starts = [], [], []
        self._ticks = 0
        self._since = self.steps
        self._until = self.steps + int(word["steps"])
        self._updates = self._count()
        self._cpu = time.process_time()
        self._last = time.perf_counter()

    def _count(self) -> int:
        """Updates made by all optimizers so far; where there are none, the steps seen."""
        total = 0
        for optimizer in list(self.observer.optimizers.values()):
            try:
                count = optimizer.iterations
                total += int((count.numpy if hasattr(count, "numpy") else count.value().numpy)())
            except Exception:
                return self.steps
        return total or self.steps


def _end_with(coordinator: int | None) -> None:
    """Be killed when the coordinator is gone, although stopped: where it is this one's parent, Linux sees to it."""
    with contextlib.suppress(Exception):
        import ctypes

        if os.getppid() == coordinator:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


class Scout:
    """Ends the scouting run once enough was seen of it."""

    MOST_SECONDS = 12.0
    ENOUGH_SECONDS = 3.0

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self._began = 0.0
        self._highest = 0

    def tick(self, stream: Stream, end: float, n: int) -> None:
        if not self._began:
            self._began = end
        elapsed = end - self._began
        window = self.observer.window
        self._highest = max(self._highest, stream.priority)
        # While another kind goes on that is less of a step, it is open which of the two takes most of the time.
        settled = stream.priority == self._highest and not window.is_open and not _better_to_come(window)
        seen = window.opened_times > 0 and settled
        if (seen and elapsed > self.ENOUGH_SECONDS) or elapsed > self.MOST_SECONDS:
            from flatout.trial.child import finish

            self.observer.recorder.fact("scouted", seconds=elapsed)
            finish(self.observer)
            _leave(0)


def _better_to_come(window: Any) -> bool:
    """The window was opened for something that has turned out not to be the step."""
    return window.opened_for is not None and window.opened_for.priority < window.best
