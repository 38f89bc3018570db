"""The worker's own side: reads a task from a pipe, does it, answers on another.

`python -m flatout.process.worker_main MODULE:CLASS READING WRITING` is a worker; with the number of a socket alone it
is a fork server of workers. An exception in a task is an answer, and only the death of the process ends the loop. What
a task prints goes to the log, never into the answers.
"""

from __future__ import annotations

import importlib
import os
import socket
import sys
import traceback
from typing import Any

from flatout.model.errors import FlatoutError
from flatout.process import forking
from flatout.process.memory import inherit_memory
from flatout.process.messages import decode, encode
from flatout.process.worker import Answer, Failure, Task, WorkerRequest

LONGEST_TEXT = 600
"""Characters of an error's message that are kept: converters put whole graphs into theirs."""


def work(tasks_name: str, reading: int, writing: int) -> None:
    """Do tasks until the pipe is closed."""
    _be_killed_first()
    module, _, name = tasks_name.partition(":")
    tasks = getattr(importlib.import_module(module), name)()
    with os.fdopen(reading, "r") as requests, os.fdopen(writing, "w") as answers:
        for line in requests:
            answer = _done(tasks, decode(line, Task))
            sys.stdout.flush()
            sys.stderr.flush()
            answers.write(encode(answer) + "\n")
            answers.flush()


def _done(tasks: Any, task: Task) -> Answer | Failure:
    try:
        return Answer(getattr(tasks, task.name)(**task.arguments))
    except FlatoutError as error:
        # A class of tasks names the errors that mean "there is nothing to do here".
        return Failure("needless" if isinstance(error, getattr(tasks, "NEEDLESS", ())) else "failed", str(error))
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        return Failure("failed", shortened(error))


def shortened(error: BaseException) -> str:
    """The exception in one line of bounded length; all of it is in the log."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words[:LONGEST_TEXT]}" if words else type(error).__name__


def _be_killed_first() -> None:
    """When memory runs out, the kernel should kill this process, not flatout or a program of the user's."""
    try:
        with open("/proc/self/oom_score_adj", "w") as stream:
            stream.write("1000")
    except OSError:
        return


def _main(words: list[str]) -> None:
    if len(words) == 1:
        request, kept = forking.serve(socket.socket(fileno=int(words[0])))
        inherit_memory()
        tasks, reading, writing = decode(request, WorkerRequest).tasks, *kept
    else:
        tasks, reading, writing = words[0], int(words[1]), int(words[2])
    work(tasks, reading, writing)


if __name__ == "__main__":
    _main(sys.argv[1:])
