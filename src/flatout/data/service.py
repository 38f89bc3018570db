"""The tf.data service for one pipeline: a dispatcher, workers in processes of their own, and whether it pays.

The parent starts and ends the processes and never imports TensorFlow. The head (`service_main.py`) makes the pipeline,
is the dispatcher, registers the pipeline there and measures; each worker computes elements. All of them end when their
standard input is closed, so none outlives the parent, however that one ends. On further machines `--join ADDRESS`
starts workers for a dispatcher that runs elsewhere.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any

from flatout.model.case import Case, Interval, Program, Trial
from flatout.model.errors import ServiceFailed
from flatout.model.version import __version__

RESTARTS = 3
"""Times that a worker is started again before the rest goes on without it."""
PATIENCE = 300.0
"""Seconds for all processes to be there: each imports TensorFlow."""


@dataclass(frozen=True)
class Wishes:
    target: str | None = None
    workers: int = 1
    port: int = 0
    host: str = "localhost"
    """The name under which others reach this machine."""
    join: str | None = None


@dataclass(frozen=True)
class Measured:
    """The pipeline in the trainer's process against the same pipeline through the service, in turns."""

    speedup: Interval | None
    """How many times as fast the service is; None where it could not be measured."""
    local_per_second: float = 0.0
    service_per_second: float = 0.0
    why_not: str = ""

    def verdict(self, workers: int) -> str:
        if self.speedup is None:
            return f"It cannot be served: {self.why_not}"
        rates = f"{self.local_per_second:,.0f} elements/s in the program, {self.service_per_second:,.0f} by the service"
        shown = f"{self.speedup.ratio:.2f}× [{self.speedup.low:.2f}, {self.speedup.high:.2f}]"
        many = f"{workers} worker{'s' if workers > 1 else ''}"
        if self.speedup.low > 1:
            return f"The service pays: {shown} with {many} ({rates})."
        if self.speedup.high < 1:
            return f"The service does not pay: {shown} with {many} ({rates})."
        return f"No measurable difference: {shown} with {many} ({rates})."

    def as_case(self, wishes: Wishes) -> Case:
        status: Any = "failed"
        if self.speedup is not None:
            status = "won" if self.speedup.low > 1 else "lost" if self.speedup.high < 1 else "noise"
        trial = Trial(("service",), status, self.speedup, note=self.why_not, equivalence="semantic")
        verdict = self.verdict(wishes.workers)
        return Case("data", Program(tuple(sys.argv)), trials=(trial,), verdict=verdict, flatout=__version__)


@dataclass
class _Child:
    """A process of the service, what it is asked through its standard input, and what it answers."""

    role: str
    process: subprocess.Popen[bytes]
    answers: IO[str]
    number: int = 0

    def ask(self, word: str) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.write(f"{word}\n".encode())
            self.process.stdin.flush()

    def end(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.answers.close()


class Service:
    """`with Service(wishes, say) as service:` until its end, everything runs."""

    def __init__(self, wishes: Wishes, say: Callable[[str], None]) -> None:
        self.wishes, self._say = wishes, say
        self.address = wishes.join or ""
        self.dataset_id: str | None = None
        self._children: list[_Child] = []
        self._selector = selectors.DefaultSelector()
        self._restarts: dict[int, int] = {}

    def __enter__(self) -> Service:
        try:
            if self.wishes.join is None:
                head = self._started("head", target=self.wishes.target, port=self.wishes.port, host=self.wishes.host)
                found = self._expect(head, "address")
                self.address, self.dataset_id = found["address"], found["dataset_id"]
            for number in range(self.wishes.workers):
                self._started("worker", number, address=self.address, host=self.wishes.host)
            for child in [child for child in self._children if child.role == "worker"]:
                self._expect(child, "ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # Workers first: one that loses its dispatcher complains.
        for child in sorted(self._children, key=lambda child: child.role, reverse=True):
            child.end()
        self._selector.close()

    def measure(self) -> Measured:
        head = self._children[0]
        head.ask("measure")
        found = self._expect(head, "measured", patience=600.0)
        interval = Interval(*found["speedup"]) if found["speedup"] else None
        return Measured(interval, found["local"], found["service"], found["why_not"])

    def wait(self) -> None:
        """Until a signal. A worker that dies is started again, a few times."""
        while True:
            for key, _ in self._selector.select():
                child: _Child = key.data
                if line := child.answers.readline():
                    word, content = json.loads(line)
                    if word == "failed":
                        self._say(str(content))
                    continue
                self._selector.unregister(child.answers)
                if child.role == "head":
                    raise ServiceFailed(f"The dispatcher {_ended(child)}. Start it again.")
                self._replace(child)

    def _replace(self, child: _Child) -> None:
        self._children.remove(child)
        reason = _ended(child)
        child.end()
        self._restarts[child.number] = self._restarts.get(child.number, 0) + 1
        if self._restarts[child.number] > RESTARTS:
            self._say(f"worker {child.number} {reason}, for the {RESTARTS + 1}th time; it is left out")
            if not any(one.role == "worker" for one in self._children):
                raise ServiceFailed(
                    "No worker is left to serve the pipeline: each has failed too often. Their messages stand above."
                )
            return
        self._say(f"worker {child.number} {reason}; starting it again")
        self._started("worker", child.number, address=self.address, host=self.wishes.host)

    def _started(self, role: str, number: int = 0, **asked: Any) -> _Child:
        reading, writing = os.pipe()
        command = [
            sys.executable,
            "-m",
            "flatout.data.service_main",
            role,
            json.dumps({**asked, "answer": writing}),
        ]
        process = subprocess.Popen(
            command,
            env={"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "", **os.environ},
            pass_fds=(writing,),
            stdin=subprocess.PIPE,
            stdout=sys.stderr,
            start_new_session=True,  # Ctrl-C is for the parent, which ends them in order
        )
        os.close(writing)
        child = _Child(role, process, os.fdopen(reading, encoding="utf-8"), number)
        self._children.append(child)
        self._selector.register(child.answers, selectors.EVENT_READ, child)
        return child

    def _expect(self, child: _Child, wanted: str, patience: float = PATIENCE) -> dict[str, Any]:
        with selectors.DefaultSelector() as one:
            one.register(child.answers, selectors.EVENT_READ)
            if not one.select(patience):
                raise ServiceFailed(f"The {child.role} said nothing for {patience:.0f} s and was ended.")
        line = child.answers.readline()
        if not line:
            raise ServiceFailed(f"The {child.role} {_ended(child)} before it was ready; its message stands above.")
        word, content = json.loads(line)
        if word != wanted:
            raise ServiceFailed(str(content))
        return dict(content)


def _ended(child: _Child) -> str:
    with contextlib.suppress(subprocess.TimeoutExpired):
        code = child.process.wait(timeout=5)
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    return "closed its pipe"


# ── inside a process with TensorFlow ─────────────────────────────────────────────────────────────────────────────────

LOOK_SECONDS = 1.5
MODE = "distributed_epoch"
"""Every element once, from whichever worker has it first."""


def distributed(dataset: Any, address: str) -> Any:
    """The same elements through the service, in whatever order the workers give them."""
    import tensorflow as tf

    return dataset.apply(tf.data.experimental.service.distribute(processing_mode=MODE, service=address))


def measure(dataset: Any, address: str, seconds: float = 120.0) -> Measured:
    """Whether the service at `address` gives a `tf.data.Dataset` faster than this process does: passes in turns."""
    import time

    from flatout.data.contestant import Pipeline, compare
    from flatout.measure.race import TimeLimit
    from flatout.pipeline import running

    seen = running.look(dataset, LOOK_SECONDS)
    if not seen.elements:
        return Measured(None, why_not="the pipeline gives no element.")
    local, remote = Pipeline(dataset, seen.elements), Pipeline(distributed(dataset, address), seen.elements)
    try:
        found = compare(local, remote, TimeLimit(time.monotonic() + seconds), elsewhere=True)
    except Exception as error:  # of any kind: a service that cannot run a pipeline is a result
        return Measured(None, why_not=reason_against(dataset, error))
    speedup = found.verdict.speedup
    if speedup is None:
        return Measured(None, why_not=f"{seconds:.0f} s gave too few rounds to compare it.")
    return Measured(speedup, found.before.elements_per_second(), found.after.elements_per_second())


def reason_against(dataset: Any, error: Exception) -> str:
    from flatout.observe import stages

    for stage, _ in stages.chain(dataset):
        if "python" in stages.states(stage):
            return (
                f"{stages.place(stage)} calls Python, which lives in the program alone. Write it with TensorFlow's ops."
            )
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0][:300] if str(error).strip() else ''}"
