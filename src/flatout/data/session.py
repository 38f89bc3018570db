"""The parent's side of `flatout data inspect` and `tune`: starts the child, shows its progress, reads its case.

Never imports TensorFlow. When a child crashes or hangs, its results up to then are used, and what it was doing becomes
a row of the trials.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from flatout import store
from flatout.data import inspection
from flatout.data.progress import Progress
from flatout.data.task import PipelineTask
from flatout.model.case import Case, Note, Program, Trial
from flatout.model.errors import ProgramUnusable
from flatout.model.evidence.pipelines import PipelinePace
from flatout.process.fence.means import NOTHING, Leave
from flatout.process.launch import start
from flatout.process.messages import encode
from flatout.process.watchdog import Tree, Watchdog
from flatout.trial import launcher, temporary
from flatout.trial.child_process import Launch, prepared
from flatout.trial.refusals import last_words
from flatout.trial.settings import GuestSettings

RESULT, PROGRESS = "data.json", "progress.txt"
PROGRAM_SECONDS = 240.0
"""How long the program may take until its datasets are known."""
TARGET = Path(__file__).with_name("target_main.py")


@dataclass(frozen=True)
class PipelineRequest:
    """A program or function whose pipelines the child works on, and the task."""

    target: str
    arguments: tuple[str, ...] = ()
    module: bool = False
    task: PipelineTask = field(default_factory=PipelineTask)
    seconds: float = 120.0
    leave: Leave = NOTHING

    @property
    def command(self) -> tuple[str, ...]:
        name, colon, function = self.target.rpartition(":")
        if colon and name and function.replace(".", "").isidentifier() and not self.module:
            return (sys.executable, str(TARGET), self.target, *self.arguments)
        return tuple(launcher.command_for(self.target, self.arguments, self.module))


def run(
    request: PipelineRequest, directory: Path, quiet: bool = False, sources: Sequence[tuple[str, str]] = ()
) -> Case:
    """Run the child. Returns its case, with the program and its steps added."""
    directory.mkdir(parents=True, exist_ok=True)
    module = request.target if request.module else None
    launch = Launch(request.command, module=module, seed=None, sources=tuple(sources), leave=request.leave)
    command = prepared(launch, directory, GuestSettings("flatout.data.child", encode(request.task)))
    began = time.monotonic()
    started = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
    watchdog = Watchdog()
    late = False
    process = start(command.words, command.environment, directory / "output.txt")
    tree = Tree(process.pid, command.mark)
    watchdog.watch(tree.group, tree.mark, command.link)
    try:
        with Progress(directory / PROGRESS, request.seconds, quiet) as progress:
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=0.3)
                progress.update()
                since = progress.working_since
                late = time.monotonic() - (since or began) > (1.5 * request.seconds + 30 if since else PROGRAM_SECONDS)
                if late:
                    break
    finally:
        tree.kill()
        code = process.wait()
        watchdog.forget(process.pid)
        temporary.remove_link(directory)
        watchdog.close()
    program = Program(
        command=request.command,
        directory=str(Path.cwd()),
        started=started,
        seconds=round(time.monotonic() - began, 3),
        exit_code=code if code >= 0 else None,
    )
    return _read_result(_observed(directory, program), directory, code, late)


def _observed(directory: Path, program: Program) -> Case:
    from flatout.environment import summary
    from flatout.observe.reading import assemble

    return assemble(directory, program, summary)


def _read_result(seen: Case, directory: Path, code: int, late: bool) -> Case:
    path = directory / RESULT
    if not path.exists():
        output = directory / "output.txt"
        why = last_words(output) or f"it ended with code {code}"
        raise ProgramUnusable(f"The program did not reach a tf.data pipeline: {why}. Its output is in {output}.")
    found = store.load(path)
    if not found.pipelines:
        errors = [note.text for note in found.notes if note.level == "error"]
        reason = last_words(directory / "output.txt") if code else ""
        raise ProgramUnusable(
            f"{(errors or [reason or 'The program iterates no tf.data pipeline.'])[0]} Name a program that iterates a "
            "tf.data.Dataset, or a function that makes one (`package.module:function`)."
        )
    case = replace(found, program=seen.program, environment=seen.environment, steps=seen.steps, flatout=seen.flatout)
    if late or code < 0:
        case = _cut_short(case, directory, late)
    return _with_needs(case)


def _cut_short(case: Case, directory: Path, late: bool) -> Case:
    activity = _last_progress(directory)
    output = last_words(directory / "output.txt")
    why = "it took too long and was stopped" if late else f"the process crashed ({output})"
    note = Note("warning", f"While {activity or 'it worked'}, {why}. The results up to then are shown.")
    trials = case.trials
    if activity.startswith("trying "):
        lever = activity.removeprefix("trying ").split(" ")[0]
        trials = (*trials, Trial((lever,), "timeout" if late else "failed", note=why))
    return replace(case, notes=(*case.notes, note), trials=trials)


def _with_needs(case: Case) -> Case:
    """Add how many elements the trainer takes, from the steps that were observed: their time without input waits."""
    steps = case.steps
    if TARGET.name in " ".join(case.program.command):
        return replace(case, steps=None)  # nothing is trained: the steps are flatout's own iterations
    if steps is None or steps.split_ms is None or steps.ms.median <= steps.split_ms.input:
        return case
    needs = steps.ms.median - steps.split_ms.input
    evidence = tuple(
        replace(item, needs_ms=needs) if isinstance(item, PipelinePace) and not item.needs_ms else item
        for item in case.evidence
    )
    case = replace(case, evidence=evidence)
    return case if case.trials else replace(case, verdict=inspection.verdict(case))


def _last_progress(directory: Path) -> str:
    with contextlib.suppress(OSError, IndexError):
        return (directory / PROGRESS).read_text(encoding="utf-8").splitlines()[-1].partition("\t")[2]
    return ""


def new_directory(request: PipelineRequest) -> Path:
    """Where the case is kept: a temporary directory if the working directory cannot be written.

    Raises where there is no such program, before anything is made.
    """
    assert request.command
    title = f"data-{Path(request.target.replace(':', '-')).stem}"
    try:
        return store.new_directory(title)
    except OSError:
        return Path(tempfile.mkdtemp(prefix=f"flatout-{os.path.basename(title)}-"))
