"""The tf.data service for one pipeline: a dispatcher, worker processes, and whether the service is faster.

The parent starts and ends the processes and never imports TensorFlow. The head (`service_main.py`) makes the pipeline,
runs the dispatcher, registers the pipeline with it and measures; each worker computes elements. All of them end when
their standard input is closed, so none outlives the parent. On other machines, `--join ADDRESS` starts workers for this
dispatcher.
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
"""How often a worker is restarted before the service continues without it."""
START_SECONDS = 300.0
"""Time limit for the start of each process: it imports TensorFlow."""


@dataclass(frozen=True)
class ServiceRequest:
    target: str | None = None
    workers: int = 1
    port: int = 0
    host: str = "localhost"
    """The name under which other machines reach this one."""
    join: str | None = None


@dataclass(frozen=True)
class Measured:
    """The pipeline in the trainer's process against the same pipeline through the service, measured alternately."""

    speedup: Interval | None
    """How many times as fast the service is; None if it could not be measured."""
    local_per_second: float = 0.0
    service_per_second: float = 0.0
    why_not: str = ""

    def verdict(self, workers: int) -> str:
        if self.speedup is None:
            return f"The pipeline cannot be served: {self.why_not}"
        local, remote = f"{self.local_per_second:,.0f}", f"{self.service_per_second:,.0f}"
        rates = f"{local} elements/s in the program, {remote} through the service"
        shown = f"{self.speedup.ratio:.2f}× [{self.speedup.low:.2f}, {self.speedup.high:.2f}]"
        many = f"{workers} worker{'s' if workers > 1 else ''}"
        if self.speedup.low > 1:
            return f"The service is faster: {shown} with {many} ({rates})."
        if self.speedup.high < 1:
            return f"The service is slower: {shown} with {many} ({rates})."
        return f"No measurable difference: {shown} with {many} ({rates})."

    def as_case(self, request: ServiceRequest) -> Case:
        status: Any = "failed"
        if self.speedup is not None:
            status = "won" if self.speedup.low > 1 else "lost" if self.speedup.high < 1 else "noise"
        trial = Trial(("service",), status, self.speedup, note=self.why_not, equivalence="semantic")
        verdict = self.verdict(request.workers)
        return Case("data", Program(tuple(sys.argv)), trials=(trial,), verdict=verdict, flatout=__version__)


@dataclass
class _Child:
    """A process of the service. It reads commands from its standard input and answers through a pipe."""

    role: str
    process: subprocess.Popen[bytes]
    answers: IO[str]
    number: int = 0

    def send(self, command: str) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.write(f"{command}\n".encode())
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
    """`with Service(request, say) as service:` the processes run until the end of the block."""

    def __init__(self, request: ServiceRequest, say: Callable[[str], None]) -> None:
        self.request, self._say = request, say
        self.address = request.join or ""
        self.dataset_id: str | None = None
        self._children: list[_Child] = []
        self._selector = selectors.DefaultSelector()
        self._restarts: dict[int, int] = {}

    def __enter__(self) -> Service:
        try:
            if self.request.join is None:
                head = self._start("head", target=self.request.target, port=self.request.port, host=self.request.host)
                found = self._expect(head, "address")
                self.address, self.dataset_id = found["address"], found["dataset_id"]
            for number in range(self.request.workers):
                self._start("worker", number, address=self.address, host=self.request.host)
            for child in [child for child in self._children if child.role == "worker"]:
                self._expect(child, "ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # Workers first: a worker that loses its dispatcher logs errors.
        for child in sorted(self._children, key=lambda child: child.role, reverse=True):
            child.end()
        self._selector.close()

    def measure(self) -> Measured:
        head = self._children[0]
        head.send("measure")
        found = self._expect(head, "measured", seconds=600.0)
        interval = Interval(*found["speedup"]) if found["speedup"] else None
        return Measured(interval, found["local"], found["service"], found["why_not"])

    def wait(self) -> None:
        """Wait for a signal. A worker that dies is restarted, a few times."""
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
                    raise ServiceFailed(f"The dispatcher {_end_reason(child)}. Start it again.")
                self._replace(child)

    def _replace(self, child: _Child) -> None:
        self._children.remove(child)
        reason = _end_reason(child)
        child.end()
        self._restarts[child.number] = self._restarts.get(child.number, 0) + 1
        if self._restarts[child.number] > RESTARTS:
            self._say(f"worker {child.number} {reason} for the {RESTARTS + 1}th time and is not restarted")
            if not any(one.role == "worker" for one in self._children):
                raise ServiceFailed(
                    "No worker is left to serve the pipeline: each has failed too often. Their messages are above."
                )
            return
        self._say(f"worker {child.number} {reason}; restarting it")
        self._start("worker", child.number, address=self.address, host=self.request.host)

    def _start(self, role: str, number: int = 0, **settings: Any) -> _Child:
        reading, writing = os.pipe()
        command = [
            sys.executable,
            "-m",
            "flatout.data.service_main",
            role,
            json.dumps({**settings, "answer": writing}),
        ]
        process = subprocess.Popen(
            command,
            env={"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": "", **os.environ},
            pass_fds=(writing,),
            stdin=subprocess.PIPE,
            stdout=sys.stderr,
            start_new_session=True,  # only the parent gets Ctrl-C, and ends them in order
        )
        os.close(writing)
        child = _Child(role, process, os.fdopen(reading, encoding="utf-8"), number)
        self._children.append(child)
        self._selector.register(child.answers, selectors.EVENT_READ, child)
        return child

    def _expect(self, child: _Child, expected: str, seconds: float = START_SECONDS) -> dict[str, Any]:
        with selectors.DefaultSelector() as one:
            one.register(child.answers, selectors.EVENT_READ)
            if not one.select(seconds):
                raise ServiceFailed(f"The {child.role} did not answer for {seconds:.0f} s and was ended.")
        line = child.answers.readline()
        if not line:
            raise ServiceFailed(f"The {child.role} {_end_reason(child)} before it was ready. Its message is above.")
        word, content = json.loads(line)
        if word != expected:
            raise ServiceFailed(str(content))
        return dict(content)


def _end_reason(child: _Child) -> str:
    with contextlib.suppress(subprocess.TimeoutExpired):
        code = child.process.wait(timeout=5)
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    return "closed its pipe"


# The rest runs in a process with TensorFlow.

OBSERVE_SECONDS = 1.5
MODE = "distributed_epoch"
"""Every element once, from whichever worker delivers it first."""


def distributed(dataset: Any, address: str) -> Any:
    """The same elements through the service, in the order in which the workers deliver them."""
    import tensorflow as tf

    return dataset.apply(tf.data.experimental.service.distribute(processing_mode=MODE, service=address))


def measure(dataset: Any, address: str, seconds: float = 120.0) -> Measured:
    """Compare a `tf.data.Dataset` through the service at `address` with the same in this process, alternately."""
    import time

    from flatout.data.contestant import Pipeline, compare
    from flatout.measure.race import TimeLimit
    from flatout.pipeline import runtime_model

    seen = runtime_model.look(dataset, OBSERVE_SECONDS)
    if not seen.elements:
        return Measured(None, why_not="the pipeline yields no element.")
    local, remote = Pipeline(dataset, seen.elements), Pipeline(distributed(dataset, address), seen.elements)
    try:
        found = compare(local, remote, TimeLimit(time.monotonic() + seconds), elsewhere=True)
    except Exception as error:  # any exception: a pipeline that the service cannot run is a result
        return Measured(None, why_not=reason_against(dataset, error))
    speedup = found.verdict.speedup
    if speedup is None:
        return Measured(None, why_not=f"{seconds:.0f} s were not enough rounds to compare it.")
    return Measured(speedup, found.before.elements_per_second(), found.after.elements_per_second())


def reason_against(dataset: Any, error: Exception) -> str:
    from flatout.observe import stages

    for stage, _ in stages.chain(dataset):
        if "python" in stages.states(stage):
            where = stages.location(stage)
            return f"{where} calls Python, which exists only in the program. Write it with TensorFlow's ops."
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0][:300] if str(error).strip() else ''}"
