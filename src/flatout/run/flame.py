"""`--flame`: a CPU flame graph of the program's Python, drawn by py-spy from outside while it runs.

py-spy reads the program's memory and needs no change to it, so the program runs to its end whatever becomes of py-spy.
Its samples pause the program for a moment each; step times of such a run are a little longer.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from flatout.model.errors import ToolMissing

RATE = 100
PATIENCE = 60.0
"""Seconds that py-spy is given to draw after the program's end."""
START = 5.0
"""Seconds that the program is given to bring up its Python."""


def prepare(directory: Path) -> Callable[[int], Callable[[], None]]:
    """Look for py-spy now, so that its absence is an error before the program starts. Returns what starts it."""
    tool = _find()

    def start(pid: int) -> Callable[[], None]:
        _await_python(pid, directory)
        picture = directory / "flame.svg"
        command = [tool, "record", "--pid", str(pid), "--output", str(picture), "--format", "flamegraph"]
        # Its output goes to a file: a pipe that nobody reads could fill up and block it. Its own session: Ctrl-C is
        # for the program, and py-spy draws what it has when the program ends.
        log = open(directory / "flame.log", "w+b")  # noqa: SIM115  closed by `finish`
        sampler = subprocess.Popen(
            [*command, "--rate", str(RATE)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        return lambda: _finish(sampler, picture, log)

    return start


def _find() -> str:
    beside = os.path.dirname(sys.executable)
    found = shutil.which("py-spy", path=beside) or shutil.which("py-spy")
    if found is None:
        raise ToolMissing(
            '--flame needs py-spy, which is not installed. Install it with `pip install "flatout[flame]"`, '
            "or run without --flame."
        )
    return found


def _await_python(pid: int, directory: Path) -> None:
    """py-spy gives up on a process whose interpreter is not up yet. The first fact of the recording says that it is."""
    until = time.monotonic() + START
    while time.monotonic() < until and not (directory / "facts.jsonl").exists() and _alive(pid):
        time.sleep(0.01)


def _alive(pid: int) -> bool:
    # WNOWAIT: the launcher has to find the exit code still there.
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def _finish(sampler: subprocess.Popen[bytes], picture: Path, log: IO[bytes]) -> None:
    try:
        sampler.wait(PATIENCE)
        trouble = ""
    except subprocess.TimeoutExpired:
        sampler.kill()
        sampler.wait()
        trouble = f"py-spy did not finish within {PATIENCE:.0f} s"
    with log:
        log.seek(0)
        output = log.read().decode("utf-8", "replace")
    if picture.exists() and picture.stat().st_size:
        sys.stderr.write(f"flatout: flame graph in {picture}\n")
        with contextlib.suppress(OSError):
            os.unlink(log.name)
        return
    sys.stderr.write(f"flatout: no flame graph: {trouble or _reason(output)}\n")


def _reason(output: str) -> str:
    low = output.lower()
    if "permission" in low or "operation not permitted" in low:
        return (
            "this machine does not permit py-spy to look into another process (ptrace). Run as root, or in a container "
            "with `--cap-add SYS_PTRACE`, or set /proc/sys/kernel/yama/ptrace_scope to 0."
        )
    if "no stack counts" in low or "no such process" in low or "failed to find" in low or not output.strip():
        return "the program ended before py-spy had seen anything of it."
    return f"py-spy said: {output.strip().splitlines()[-1]}"
