"""The program observed in one environment, as a trial: its files are not written, and it ends once enough was seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from flatout.model.case import Case
from flatout.model.errors import InvalidOption, ProgramUnusable
from flatout.process.watchdog import Watchdog
from flatout.trial import launcher
from flatout.trial.child_process import Launch
from flatout.trial.patched_run import program_index
from flatout.tune.scout import ended_by_itself, scout
from flatout.versions.environments import Environment
from flatout.versions.request import Subject


@dataclass(frozen=True)
class Observed:
    """What one observed run has shown."""

    case: Case
    directory: Path
    ended: bool
    """Whether the program came to its end by itself."""


def launch_in(subject: Subject, environment: Environment) -> Launch:
    """How the program is started there. Raises `InvalidOption` for a command that is no Python program."""
    command = launcher.command_for(subject.program, subject.arguments, subject.module)
    if program_index(command) is None:
        raise InvalidOption(
            f"{subject.program!r} cannot be run by another Python. Give a Python file, a notebook or a module (-m)."
        )
    module = subject.program if subject.module else None
    return Launch((environment.python, *command[1:]), module=module, leave=subject.leave)


def observe(
    launch: Launch, environment: Environment, directory: Path, watchdog: Watchdog, tick: Callable[[], None], end: float
) -> Observed:
    """Raises `ProgramUnusable` where it fails there, or makes no step."""
    case = scout(launch, directory, watchdog, end, tick)
    if case.steps is None:
        why = case.program.error or "it made no step that could be timed"
        missing = ". Name the package in --env" if "ModuleNotFoundError" in why else ""
        raise ProgramUnusable(f"In {environment.title} the program cannot be measured: {why}{missing}.")
    return Observed(replace(case, kind="run"), directory, ended_by_itself(directory))
