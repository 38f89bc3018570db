"""Runs jobs on all cores, in worker processes that may die.

A worker is forked and starts at once: nothing here imports TensorFlow. When one is killed, as the system does when
memory runs out, its job is tried once more by a fresh one. A job that fails twice is reported, and the others continue.
When the parent is killed, the workers find their pipe closed and end.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

import numpy as np

from flatout.data.shards.source import Source
from flatout.model.errors import ProcessFailed

Work = TypeVar("Work")
Result = TypeVar("Result")
Report = Callable[[int, int], None]
FEW_ELEMENTS = 20_000
"""Up to this many elements are processed faster here than by starting processes."""
TRIES = 2


@dataclass(frozen=True)
class Died:
    """The result of a job whose workers died."""

    reason: str


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    job: int = -1


def cores() -> int:
    """The cores that this process may use, where the system knows."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(
    task: Callable[[Work, Report], Result],
    jobs: Sequence[Work],
    processes: int,
    report: Report = lambda count, size: None,
) -> Iterator[tuple[Work, Result | Died]]:
    """Each job with its result, in the order in which they finish. An exception in a job is raised here."""
    waiting, tries = deque(range(len(jobs))), [0] * len(jobs)
    workers: dict[Connection, _Worker] = {}
    try:
        while waiting or workers:
            while waiting and len(workers) < max(1, min(processes, len(jobs))):
                worker = _start_worker(task, list(workers))
                workers[worker.pipe] = worker
                _assign(worker, waiting, jobs)
            for ready in wait(list(workers)):
                worker = workers[ready]  # type: ignore[index]
                try:
                    word, content = worker.pipe.recv()
                except (EOFError, OSError):
                    del workers[worker.pipe]
                    tries[worker.job] += 1
                    reason = _end_reason(worker)
                    if tries[worker.job] < TRIES:
                        waiting.appendleft(worker.job)
                    else:
                        yield jobs[worker.job], Died(reason)
                    continue
                if word == "progress":
                    report(*content)
                elif word == "failed":
                    raise content
                else:
                    finished = jobs[worker.job]
                    if waiting:
                        _assign(worker, waiting, jobs)
                    else:
                        del workers[worker.pipe]
                        worker.pipe.close()
                        worker.process.join()
                    yield finished, content
    finally:
        for worker in workers.values():
            worker.process.kill()
            worker.process.join()
            worker.pipe.close()


def spread(task: Callable[[Any], Result], source: Source) -> Iterator[Result]:
    """Run a task over all elements of a source, in parts. The results come in any order."""
    count = len(source)
    if count <= FEW_ELEMENTS:
        yield task(source)
        return
    bounds = np.linspace(0, count, 4 * cores() + 1).astype(np.int64)
    parts = [source.select(np.arange(start, end)) for start, end in itertools.pairwise(bounds)]
    for _, result in run(_WithoutReport(task), parts, cores()):
        if isinstance(result, Died):
            raise ProcessFailed(f"A worker that read the source {result.reason}, twice. Is there enough memory?")
        yield result


@dataclass(frozen=True)
class _WithoutReport:
    """A task that does not report its progress."""

    task: Callable[[Any], Any]

    def __call__(self, job: Any, report: Report) -> Any:
        return self.task(job)


def _start_worker(task: Callable[[Any, Report], Any], others: Sequence[Connection]) -> _Worker:
    # A fork of a process with threads may inherit a lock that nothing releases. Our parent has no threads; Beam has.
    forks = "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1
    context: Any = multiprocessing.get_context("fork" if forks else "spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(task, theirs, (ours, *others)), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _assign(worker: _Worker, waiting: deque[int], jobs: Sequence[Any]) -> None:
    worker.job = waiting.popleft()
    with contextlib.suppress(OSError):  # it has died, which reading from its pipe will show
        worker.pipe.send(jobs[worker.job])


def _end_reason(worker: _Worker) -> str:
    worker.process.join()
    worker.pipe.close()
    code = worker.process.exitcode
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return f"was ended by {name}" + (", as the system does when memory runs out" if name == "SIGKILL" else "")
    return f"ended with exit code {code}"


def _work(task: Callable[[Any, Report], Any], pipe: Connection, parents: Sequence[Connection]) -> None:
    """The worker's side: do one job after the other until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers itself
    for end in parents:  # its own and its siblings': kept here, they would stay open after the parent has closed them
        end.close()
    with contextlib.suppress(EOFError, OSError):
        while True:
            job = pipe.recv()
            try:
                answer = ("done", task(job, lambda *done: pipe.send(("progress", done))))
            except BrokenPipeError:
                raise
            except Exception as error:  # of any kind: the parent decides what it means
                answer = ("failed", _picklable(error))
            pipe.send(answer)


def _picklable(error: Exception) -> Exception:
    """An exception that can be sent: those of libraries need not be picklable."""
    import pickle

    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
