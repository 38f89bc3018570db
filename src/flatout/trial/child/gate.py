"""The gate at which a trial waits: it lets some steps through, times them, and holds the program until the next word.

Trials of one program live side by side and only one of them runs at a time. A gate is where a step ends. The parent
writes `Go` into a pipe; the gate times the next steps, answers with `BlockDone`, and blocks in a read. When the parent
is gone, the read ends, and so does the trial.

A step is an update of the optimizers where there are any: a lever may turn two calls into one, but not two updates.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Protocol

from flatout.model.errors import InvalidMessage
from flatout.observe.streams import RANK
from flatout.process.messages import decode, encode
from flatout.trial.messages import BlockDone, Go, ProgramEnded, Warm

if TYPE_CHECKING:
    from flatout.observe.levers import LeverReport
    from flatout.observe.observer import Observer
    from flatout.observe.streams import Stream
    from flatout.trial.settings import GateSettings

WARM_TICKS = 5
WARM_TICKS_AT_MOST = 25
WARM_SECONDS = 0.4
WARM_SECONDS_AT_MOST = 6.0
FILLING_SECONDS = 20.0
"""How long a program is given to come to its second epoch, where it is measured from there on."""
READING_SECONDS = 15.0
"""How long a program on a GPU is given to run the steps whose values are read: each of them waits for the device."""
QUIET_TICKS = 3
TAKES_HOLD_SECONDS = 20.0
"""How long a lever is waited for that has changed nothing yet: some watch a call or two first."""
SLOW_STEP_SECONDS = 2.0
"""A step this long in which nothing was traced shows the pace of the program alone."""

_INFERENCE = range(RANK["model"], RANK["predict"] + 1)
_leave = os._exit


class Values(Protocol):
    """What the program computes, as the gate needs it (`values.py`)."""

    wanted: bool

    def tick(self, count: int, counted_by: object, seen_at: str = "") -> None: ...

    def begin_epoch(self) -> None: ...

    def write(self) -> None: ...

    def finish(self) -> None: ...


class Gate:
    def __init__(self, observer: Observer, settings: GateSettings, values: Values) -> None:
        self.steps = 0
        self.warm = False
        self.warm_up = WarmUp(observer, settings.fills_cache, settings.warm_steps)
        self.epochs = Epochs()
        self._devices = observer.devices
        self._observer = observer
        self._trial = observer.trial
        self._values = values
        self._pipes = Pipes(settings.read, settings.write)
        self._block = Block()
        self._rank = 0
        """Of the stream whose ticks are the steps, as far as is known."""
        self._least_rank = RANK[settings.least_step] if settings.least_step is not None else 0
        self._ticks = 0
        self._before = 0
        """Steps that were counted before it was known what a step is."""
        self._counts_updates = False
        observer.trial.not_steps = frozenset(settings.not_steps)
        _end_with(settings.parent)
        atexit.register(self._report_end)

    def tick(self, stream: Stream, end: float, n: int) -> None:
        """One call into TensorFlow that makes `n` steps has ended. On the program's hot path."""
        rank = stream.rank
        if rank != self._rank:
            if rank < self._rank or rank < self._least_rank:
                return
            self._rank, self._ticks, self._before = rank, 0, self.steps  # what was counted so far was not the step
            self.warm_up.begin(end)
        self._ticks += 1
        if self._trial.epochs != self.epochs.seen:
            self.epochs.begin(self._trial.epochs, self.steps, len(self._block.times))
            self._values.begin_epoch()
        self.steps += n
        warm, block = self.warm, self._block
        over = warm and self._ticks >= block.calls and self.steps >= block.until
        if warm:
            if self._devices.queues and (over or self._values.wanted or not block.times):
                # Reading the values waits for the devices, and is not timed: what is queued has to be done before. The
                # first call is dropped: what it has queued is no part of the others' time.
                end = self._devices.finished()
            block.times.append(end - block.last)
            block.counts.append(n)
            block.last = end
        if self._values.wanted:
            traced = stream.name if stream.kind in ("function", "train-function") else ""
            self._values.tick(self._updates(), (self._rank, self._counts_updates), traced)
            block.last = time.perf_counter()  # reading the values is no part of the next step
        if warm:
            if not over:
                return
            self._report_block()
        else:
            if not self.warm_up.is_over(end, self._ticks, self.epochs.begun, self.steps - self._before):
                return
            if self._values.wanted and self._devices.queues and not self.warm_up.has_waited(end):
                return  # a block in which values are read at each step is not at the program's own pace
            end = self._devices.finished()  # it is held with nothing queued: that would run in another's time
            self.warm = True
            self._say(Warm(self.steps, end - self.warm_up.began, self._levers(), self._trial.ran_kept))
        self._wait()

    def _report_block(self) -> None:
        block = self._block
        self._say(
            BlockDone(
                times=tuple(block.times),
                counts=tuple(block.counts),
                steps=self._updates() - block.updates or self.steps - block.since,  # none where computing was left out
                cpu=time.process_time() - block.cpu,
                epoch_steps=self.epochs.steps,
                epoch_starts=tuple(self.epochs.starts),
                levers=self._levers(),
                queued=self._devices.queues,
            )
        )

    def _say(self, message: Warm | BlockDone) -> None:
        self._values.write()  # before the answer: whoever has it may end this process
        self._pipes.say(message)

    def _report_end(self) -> None:
        """The program has come to its end: how many steps it makes is worth knowing before it is started again."""
        self._values.finish()
        self._pipes.say_end(ProgramEnded(self.steps, self._levers()))

    def leave_to_parent(self) -> None:
        """In a process that the program has forked: it is not held, and says nothing."""
        self._trial.at_step = None
        self._pipes.let_go()

    def _wait(self) -> None:
        self._trial.held += 1
        go = self._pipes.wait_for_go()
        self.epochs.starts = []
        self._ticks = 0
        self._block = Block(self.steps, self.steps + go.steps, self._updates(), go.calls)

    def _levers(self) -> dict[str, LeverReport]:
        injections = self._observer.injections
        return injections.report() if injections is not None else {}

    def _updates(self) -> int:
        """Updates made by all optimizers so far; where there are none, the steps seen."""
        if self._rank in _INFERENCE:
            return self.steps  # what is trained between them depends on how far the program has come
        total = 0
        for optimizer in list(self._trial.optimizers.values()):
            try:
                count = optimizer.iterations
                total += int((count.numpy if hasattr(count, "numpy") else count.value().numpy)())
            except Exception:
                return self.steps
        self._counts_updates = total > 0
        return total or self.steps


class Block:
    """The block under way."""

    __slots__ = ("calls", "counts", "cpu", "last", "since", "times", "until", "updates")

    def __init__(self, since: int = 0, until: int = 0, updates: int = 0, calls: int = 1) -> None:
        self.calls = calls
        self.since = since
        self.until = until
        self.updates = updates
        self.times: list[float] = []
        self.counts: list[int] = []
        self.cpu = time.process_time()
        self.last = time.perf_counter()
        """When the last step ended."""


class WarmUp:
    """Decides when the program runs at its own pace: nothing is traced any longer, and levers are ready."""

    def __init__(self, observer: Observer, fills_cache: bool, warm_steps: int = 0) -> None:
        self.began = 0.0
        self._warm_steps = warm_steps
        self._observer = observer
        self._fills_cache = fills_cache
        self._quiet_ticks = 0
        self._traced = 0.0

    def begin(self, now: float) -> None:
        self.began, self._quiet_ticks = now, 0

    def has_waited(self, now: float) -> bool:
        """Whether the program has been given the time to run the steps whose values are read."""
        return bool(self._warm_steps) or now - self.began > READING_SECONDS

    def is_over(self, now: float, ticks: int, epochs: int, steps: int = 0) -> bool:
        """Called at each tick; `ticks`, `epochs` and `steps` are those that have begun so far."""
        traced = self._observer.ticks.trace
        self._quiet_ticks = self._quiet_ticks + 1 if traced == self._traced else 0
        self._traced = traced
        injections = self._observer.injections
        if injections is not None and not injections.ready:
            return False
        if self._warm_steps:
            return steps >= self._warm_steps
        elapsed = now - self.began
        if self._fills_cache and epochs < 2 and elapsed < FILLING_SECONDS:
            return False
        if ticks < WARM_TICKS:
            if injections is not None and not any(facts.changes for facts in injections.report().values()):
                return ticks >= 4 and elapsed > TAKES_HOLD_SECONDS
            slow = ticks >= 2 and self._quiet_ticks >= 1 and elapsed > (ticks - 1) * SLOW_STEP_SECONDS
            return slow or (ticks >= 3 and elapsed > WARM_SECONDS_AT_MOST)
        steady = self._quiet_ticks >= QUIET_TICKS and elapsed > WARM_SECONDS
        return steady or ticks >= WARM_TICKS_AT_MOST or elapsed > WARM_SECONDS_AT_MOST


class Epochs:
    """An epoch begins with a new iterator over a dataset, as far as the steps show it."""

    def __init__(self) -> None:
        self.seen = 0
        """Iterators that had been made when the last step ended."""
        self.begun = 0
        self.steps = 0
        """Steps of the last whole epoch."""
        self.starts: list[int] = []
        """Calls of the block under way before which an epoch began."""
        self._began_at: int | None = None

    def begin(self, seen: int, steps: int, calls: int) -> None:
        """The program has begun a dataset anew before the step that has just ended."""
        self.seen = seen
        self.begun += 1
        if self._began_at is not None:
            self.steps = steps - self._began_at
        self._began_at = steps
        self.starts.append(calls)


class Pipes:
    """The gate's two pipes."""

    def __init__(self, read: int, write: int) -> None:
        self.reading = os.fdopen(read, "r", encoding="ascii")
        self._writing = write
        for descriptor in (read, write):
            os.set_inheritable(descriptor, False)
        self._lock = threading.Lock()
        self._process = os.getpid()

    def say(self, message: Warm | BlockDone) -> None:
        try:
            os.write(self._writing, encode(message).encode("ascii") + b"\n")
        except OSError:
            _leave(1)

    def say_end(self, message: ProgramEnded) -> None:
        if os.getpid() == self._process:  # not in a process that the program has forked
            with contextlib.suppress(OSError):
                os.write(self._writing, encode(message).encode("ascii") + b"\n")

    def let_go(self) -> None:
        """Hold the pipes open no longer: the flatout that waits is to see that the program is gone, whoever lives on.
        The numbers stay taken, as closing would leave them to files of the program."""
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (self.reading.fileno(), self._writing):
            os.dup2(nothing, descriptor, inheritable=False)
        os.close(nothing)

    def wait_for_go(self) -> Go:
        """Hold the program. Returns how far it may run; ends it where the parent is gone."""
        with self._lock:
            line = self.reading.readline()
            if not line.endswith("\n"):
                _leave(0)
            try:
                return decode(line, Go)
            except InvalidMessage as error:
                os.write(2, f"flatout: the gate received an invalid message: {error}\n".encode())
                _leave(1)
        return Go(0)


def _end_with(parent: int) -> None:
    """Be killed when the parent is gone, even while stopped. Linux does that for a direct child."""
    with contextlib.suppress(Exception):
        import ctypes

        if os.getppid() == parent:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
