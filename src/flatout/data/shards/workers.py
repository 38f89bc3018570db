"""Work on all cores, in processes that may die.

A worker is forked and begins at once: none of this imports TensorFlow. When one is killed (a lack of memory does that)
its job is tried once more by a fresh one; what fails twice is told, and the rest goes on. When the parent is killed,
the workers find their pipe closed and end.
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

from flatout.data.shards.sources import Source
from flatout.model.errors import ProcessFailed

Work = TypeVar("Work")
Result = TypeVar("Result")
Tell = Callable[[int, int], None]
SMALL = 20_000
"""Elements that are surveyed sooner than a process is started."""
TRIES = 2


@dataclass(frozen=True)
class Died:
    """A job that no worker survived."""

    reason: str


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    job: int = -1


def cores() -> int:
    """Those that this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(
    task: Callable[[Work, Tell], Result], jobs: Sequence[Work], processes: int, tell: Tell = lambda count, size: None
) -> Iterator[tuple[Work, Result | Died]]:
    """Every job with its result, in the order in which they end. An exception of a job is raised here."""
    waiting, tries = deque(range(len(jobs))), [0] * len(jobs)
    workers: dict[Connection, _Worker] = {}
    try:
        while waiting or workers:
            while waiting and len(workers) < max(1, min(processes, len(jobs))):
                worker = _started(task, list(workers))
                workers[worker.pipe] = worker
                _give(worker, waiting, jobs)
            for ready in wait(list(workers)):
                worker = workers[ready]  # type: ignore[index]
                try:
                    word, content = worker.pipe.recv()
                except (EOFError, OSError):
                    del workers[worker.pipe]
                    tries[worker.job] += 1
                    reason = _ended(worker)
                    if tries[worker.job] < TRIES:
                        waiting.appendleft(worker.job)
                    else:
                        yield jobs[worker.job], Died(reason)
                    continue
                if word == "progress":
                    tell(*content)
                elif word == "failed":
                    raise content
                else:
                    finished = jobs[worker.job]
                    if waiting:
                        _give(worker, waiting, jobs)
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
    """A task over all elements of a source, in parts, in any order."""
    count = len(source)
    if count <= SMALL:
        yield task(source)
        return
    bounds = np.linspace(0, count, 4 * cores() + 1).astype(np.int64)
    parts = [source.select(np.arange(start, end)) for start, end in itertools.pairwise(bounds)]
    for _, result in run(_Plain(task), parts, cores()):
        if isinstance(result, Died):
            raise ProcessFailed(f"A worker that looked at the source {result.reason}, twice. Is there memory enough?")
        yield result


@dataclass(frozen=True)
class _Plain:
    """A task that tells nothing while it works."""

    task: Callable[[Any], Any]

    def __call__(self, job: Any, tell: Tell) -> Any:
        return self.task(job)


def _started(task: Callable[[Any, Tell], Any], others: Sequence[Connection]) -> _Worker:
    # A fork of a process with threads may inherit a lock that nobody will release: Beam has threads, our parent none.
    forks = "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1
    context: Any = multiprocessing.get_context("fork" if forks else "spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(task, theirs, (ours, *others)), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _give(worker: _Worker, waiting: deque[int], jobs: Sequence[Any]) -> None:
    worker.job = waiting.popleft()
    with contextlib.suppress(OSError):  # it has died: its pipe tells
        worker.pipe.send(jobs[worker.job])


def _ended(worker: _Worker) -> str:
    worker.process.join()
    worker.pipe.close()
    code = worker.process.exitcode
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return f"was ended by {name}" + (", as the system does when memory runs out" if name == "SIGKILL" else "")
    return f"ended with exit code {code}"


def _work(task: Callable[[Any, Tell], Any], pipe: Connection, parents: Sequence[Connection]) -> None:
    """The worker's side: one job after the other until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers itself
    for end in parents:  # its own and its siblings': held here, they would stay open when the parent has closed them
        end.close()
    with contextlib.suppress(EOFError, OSError):
        while True:
            job = pipe.recv()
            try:
                answer = ("done", task(job, lambda *done: pipe.send(("progress", done))))
            except BrokenPipeError:
                raise
            except Exception as error:  # of any kind: the parent decides what it means
                answer = ("failed", _travelling(error))
            pipe.send(answer)


def _travelling(error: Exception) -> Exception:
    """An exception that can be sent: what a library raises need not be picklable."""
    import pickle

    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
