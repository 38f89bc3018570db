"""Starts the user's program in a child, observed, and waits for it as a shell would.

The child is the plain interpreter on the plain program: output, arguments, directory, stdin, signals and exit code are
its own. All that flatout adds is an environment that makes the interpreter import `site/sitecustomize.py` first.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from flatout.errors import ProgramNotFound

SITE = Path(__file__).parent / "site"
PACKAGE = Path(__file__).parent.parent.parent
FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)


@dataclass(frozen=True)
class Ended:
    """How the program ended: a return code as `subprocess` gives it (negative for a signal)."""

    returncode: int
    seconds: float

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
    if path.suffix == ".py" or path.is_dir() or path.suffix in (".pyz", ".zip"):
        if not path.exists():
            raise ProgramNotFound(
                f"There is no program at {program!r}. Give the path of a Python file (`flatout run train.py --epochs 3`), "
                "a module (`flatout run -m package.train`), or a command on PATH."
            )
        return [sys.executable, program, *arguments]
    if path.is_file() and not os.access(path, os.X_OK):
        return [sys.executable, program, *arguments]
    found = shutil.which(program)
    if found is None:
        raise ProgramNotFound(
            f"{program!r} is neither a file here nor a command on PATH. Give the path of a Python file, "
            "`-m` and a module, or a command that starts Python."
        )
    return [found, *arguments]


def environment_for(settings: dict[str, Any], base: dict[str, str] | None = None) -> dict[str, str]:
    environment = dict(os.environ if base is None else base)
    kept = environment.get("PYTHONPATH")
    if kept is not None:
        environment["FLATOUT_PYTHONPATH"] = kept
    environment["PYTHONPATH"] = str(SITE) + (os.pathsep + kept if kept else "")
    environment["FLATOUT_PACKAGE"] = str(PACKAGE)
    environment["FLATOUT_OBSERVE"] = json.dumps(settings)
    return environment


def run(
    command: Sequence[str], environment: dict[str, str], on_start: Callable[[int], Callable[[], None]] | None = None
) -> Ended:
    """Run to the end. Ctrl-C reaches the program from the terminal itself; other signals are passed on to it."""
    began = time.perf_counter()
    try:
        process = subprocess.Popen(list(command), env=environment)
    except PermissionError as error:
        raise ProgramNotFound(f"{command[0]!r} cannot be started: {error.strerror}.") from None
    on_end = on_start(process.pid) if on_start is not None else None
    with _passing_signals(process):
        while True:
            try:
                returncode = process.wait()
                break
            except KeyboardInterrupt:
                continue  # the program decides what Ctrl-C means
    seconds = time.perf_counter() - began
    if on_end is not None:
        on_end()
    return Ended(returncode, seconds)


@contextmanager
def _passing_signals(process: subprocess.Popen[bytes]) -> Iterator[None]:
    def forward(number: int, frame: FrameType | None) -> None:
        if process.poll() is None:
            process.send_signal(number)

    def interrupted(number: int, frame: FrameType | None) -> None:
        # From a terminal the program has had it already, as a member of the same group. Sent to flatout alone
        # (`kill -INT`), it has not: pass it on, unless a terminal sent it to both.
        if not _terminal_shared() and process.poll() is None:
            process.send_signal(signal.SIGINT)

    before: dict[int, Any] = {}
    try:
        for number in FORWARDED:
            before[number] = signal.signal(number, forward)
        before[signal.SIGINT] = signal.signal(signal.SIGINT, interrupted)
    except ValueError:
        pass  # not the main thread: leave the signals as they are
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _terminal_shared() -> bool:
    try:
        return os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


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
