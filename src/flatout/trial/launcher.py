"""Starts the user's program in a child, observed, and waits for it as a shell would.

The child is the plain interpreter on the plain program: output, arguments, directory, stdin, signals and exit code are
its own. All that flatout adds is an environment that makes the interpreter import `child/site/sitecustomize.py` first.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flatout.model.errors import ProgramNotFound
from flatout.process import signals
from flatout.process.messages import encode
from flatout.source.notebooks import program as notebooks
from flatout.trial.settings import ChildSettings

SITE = Path(__file__).parent / "child" / "site"
PACKAGE = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Ended:
    """How the program ended: a return code as `subprocess` gives it (negative for a signal)."""

    returncode: int
    seconds: float
    began: float = 0.0
    """When it was started, on the clock of `time.perf_counter`, which on Linux is that of all processes."""

    @property
    def signal_name(self) -> str | None:
        if self.returncode >= 0:
            return None
        try:
            return signal.Signals(-self.returncode).name
        except ValueError:
            return f"signal {-self.returncode}"


def command_for(program: str, arguments: Sequence[str], module: bool) -> list[str]:
    """The command line that runs the program as the user would have."""
    if module:
        return [sys.executable, "-m", program, *arguments]
    path = Path(program)
    if notebooks.is_notebook(program) and path.exists():
        return [sys.executable, str(notebooks.program_of(program)), *arguments]
    if path.suffix in (".py", ".pyz", ".zip", ".ipynb") and not path.exists():
        raise ProgramNotFound(
            f"There is no program at {program!r}. Give the path of a Python file, a module (`-m package.train`), or a "
            "command on PATH."
        )
    if path.suffix in (".py", ".pyz", ".zip") or (path / "__main__.py").is_file():
        return [sys.executable, program, *arguments]
    if path.is_file() and not os.access(path, os.X_OK):
        return [sys.executable, program, *arguments]
    found = shutil.which(program)
    if found is not None:
        return [found, *arguments]
    if path.is_file():
        return [sys.executable, program, *arguments]
    raise ProgramNotFound(
        f"{program!r} is a directory without a __main__.py. Give the Python file to run."
        if path.is_dir()
        else f"{program!r} is neither a file here nor a command on PATH. Give the path of a Python file, "
        "`-m` and a module, or a command that starts Python."
    )


def environment_for(settings: ChildSettings, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment in which the interpreter wakes flatout before it runs the program."""
    environment = waking_environment(os.environ if base is None else base)
    environment["FLATOUT_OBSERVE"] = encode(settings)
    if settings.trial is not None:
        environment["FLATOUT_TRIAL"] = "1"  # it is not run at all where it cannot be shielded
    return environment


def waking_environment(base: Mapping[str, str]) -> dict[str, str]:
    """The same without settings: `site/sitecustomize.py` only takes itself out again."""
    environment = dict(base)
    kept = environment.get("PYTHONPATH")
    if kept is not None:
        environment["FLATOUT_PYTHONPATH"] = kept
    environment["PYTHONPATH"] = str(SITE) + (os.pathsep + kept if kept else "")
    environment["FLATOUT_PACKAGE"] = str(PACKAGE)
    return environment


def run(
    command: Sequence[str], environment: dict[str, str], on_start: Callable[[int], Callable[[], None]] | None = None
) -> Ended:
    """Run to the end. What a signal means, Ctrl-C too, is the program's own decision."""
    began = time.perf_counter()
    try:
        # Descriptors that flatout was given (`3>log`, `<(zcat data)`) are meant for the program.
        process = subprocess.Popen(list(command), env=environment, close_fds=False)
    except OSError as error:
        raise ProgramNotFound(
            f"{command[0]!r} cannot be started: {error.strerror}. It needs to be executable, with a first line such as "
            "`#!/usr/bin/env python3`, or to be given as a Python file."
        ) from None
    with signals.forwarded_to(process) as wait:
        on_end = on_start(process.pid) if on_start is not None else None
        returncode = wait()
    seconds = time.perf_counter() - began
    if on_end is not None:
        on_end()
    return Ended(returncode, seconds, began)


def leave_like(ended: Ended) -> None:
    """End this process as the program ended: by the same signal, or with the same code."""
    sys.stdout.flush()
    sys.stderr.flush()
    if ended.returncode < 0:
        number = -ended.returncode
        try:
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program's core dump is enough
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            pass
        os.kill(os.getpid(), number)
        time.sleep(1)
        raise SystemExit(128 + number)
    raise SystemExit(ended.returncode)
