"""One race of a tune on the node of a cluster: the same code that races levers on the machine that tunes.

A process of its own, started by `node.raced`. The assignment comes as a line of its input, what it has to tell goes to
its output line by line. Its input stays open: where it is closed, nobody waits for the race any longer, and it ends
with all its trials.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from flatout.environment import gather, machine, nvidia
from flatout.measure import processors
from flatout.model import codec
from flatout.model.case import Case, Trial, to_plain
from flatout.model.errors import CannotFence, FlatoutError
from flatout.process.fence.means import Leave, decide
from flatout.process.messages import decode, encode
from flatout.report.progress import Progress
from flatout.tune import identity
from flatout.tune.attempts import Attempts
from flatout.tune.clock import SharedClock
from flatout.tune.context import Context
from flatout.tune.spread import cores
from flatout.tune.spread.messages import Assignment, Begun, Over, Said, Told, Tried
from flatout.tune.trials import Trials

Tell = Callable[[Begun | Said | Tried | Over], None]

GRACE_SECONDS = 20.0
"""For the end of a race that nobody waits for."""


class Telling(Progress):
    """The progress of the race, told to the coordinator."""

    def __init__(self, tell: Tell) -> None:
        super().__init__(float("inf"), quiet=True)
        self.tell = tell
        self.trials: Trials | None = None

    def phase(self, text: str) -> None:
        self.say(text)

    def say(self, text: str) -> None:
        self.tell(Said(text))

    def finished(self, trial: Trial, machine: str = "") -> None:
        assert self.trials is not None
        nominated, promising = self.trials.nominated.get(trial.levers), self.trials.promising.get(trial.levers)
        self.tell(Tried(to_plain(trial), nominated, promising))


def raced(assignment: Assignment, directory: Path, tell: Tell) -> Over:
    """Race the levers, and tell of each trial once it is known."""
    progress = Telling(tell)
    context = _context(assignment, directory, progress)
    progress.trials = context.trials
    wanted = assignment.wanted
    try:
        context.fork_servers.prepare(assignment.packages, assignment.changed)
        launch = context.contestant(wanted.base).launch if wanted.base else context.launch
        race = context.race(replace(launch, least_step=wanted.least_step, not_steps=wanted.not_steps))
        attempts = Attempts(context, wanted.base, ahead=wanted.ahead)
        attempts.until = None if wanted.seconds is None else time.monotonic() + wanted.seconds
        if not context.problem:
            attempts.race_all(race, wanted.levers, wanted.comparisons, wanted.until)
    finally:
        context.close()
    taken = tuple(tuple(one.taken) for one in context.races)
    return Over(dict(context.trials.skipped), taken, context.ended_after, context.problem)


def _context(assignment: Assignment, directory: Path, progress: Progress) -> Context:
    told = assignment.time
    clock = SharedClock(told.budget, time.monotonic() - told.spent, told.reserved, for_run=told.for_run)
    launch = assignment.launch
    if not Path(launch.kept).is_dir():  # the cells run
        launch = replace(launch, kept="")
    context = Context.of(assignment.request, directory, progress, launch, clock)
    context.case = Case.from_json(assignment.case)
    context.whole, context.ended_after, context.beside = assignment.whole, assignment.ended_after, assignment.beside
    context.trials.found += [codec.read(Trial, one, "trial") for one in assignment.found]
    return context


def begun() -> Begun:
    """This machine, as the race has it."""
    gpus = nvidia.ask().get("gpus") or () if machine.has_gpu() else ()
    gpu = next((str(one.get("name") or "") for one in gpus if isinstance(one, dict)), "")
    return Begun(str(gather.cpu()["model"] or ""), processors.count(), gpu)


def look(leave: Leave) -> None:
    """What the coordinator holds against its own: versions, and why trials cannot be fenced here."""
    try:
        decide(leave)
        refused = ""
    except CannotFence as error:
        refused = str(error)
    print(json.dumps({"versions": identity.versions(), "refused": refused}))  # noqa: T201  # it is asked for


def main() -> None:
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else gets among the lines
        signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the node may ignore it
        assignment = decode(sys.stdin.readline(), Assignment)
        threading.Thread(target=_end_with_input, daemon=True).start()
        try:
            _answer(assignment, answers)
        except (KeyboardInterrupt, BrokenPipeError):
            os._exit(1)  # nobody is there to be told


def _answer(assignment: Assignment, answers: TextIO) -> None:
    lock = threading.Lock()  # numbers are compared by several threads

    def tell(about: Begun | Said | Tried | Over) -> None:
        with lock:
            answers.write(encode(Told(about)) + "\n")
            answers.flush()

    held = cores.reserve(assignment.cores)
    tell(begun())
    with tempfile.TemporaryDirectory(prefix="flatout-race-") as directory:
        try:
            over = raced(assignment, Path(directory), tell)
        except FlatoutError as error:
            over = Over(problem=str(error))
    for stream in held:
        stream.close()
    tell(over)


def _end_with_input() -> None:
    sys.stdin.read()
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    signal.pthread_kill(main_thread, signal.SIGINT)
    time.sleep(GRACE_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
