"""Starts public programs: plainly with a clock, or under flatout, each in its own checkout and on its own cores."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from _public_checkout import GITHUB
from _public_list import LIST, Program

STANDINS = LIST / "standins"
PATHS = {
    "gym": "gym",
    "gym-new": "gym",
    "gymnasium": "gym",
    "tensorflow_datasets": "datasets",
    "input_data": "datasets",
}
LIMIT = 1800
"""Seconds after which a whole run is given up."""
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?(?![\w.])")
TELLING = re.compile(r"loss|acc|reward|score|error|mse|mae|return|precision|perplexity|bleu|cost", re.IGNORECASE)


@dataclass(frozen=True)
class Setting:
    """Where and on what everything runs."""

    checkouts: Path
    mirror: str = GITHUB
    packages: tuple[Path, ...] = ()
    cores: tuple[int, ...] = ()
    """The process may use these alone; none: all."""
    cases: Path | None = None
    """Where cases and outputs of flatout are kept."""

    def environment(self, program: Program) -> dict[str, str]:
        paths = [
            STANDINS / "site",
            *(STANDINS / PATHS[need] for need in program.needs if need in PATHS),
            *self.packages,
        ]
        given = os.environ.get("PYTHONPATH")
        new = {"gym": "old", "gym-new": "new"}
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*map(str, dict.fromkeys(paths)), *([given] if given else [])]),
            "KERAS_HOME": str(keras_home(self.checkouts, "full-data" in program.needs)),
            "GYM_API": next((new[need] for need in program.needs if need in new), "old"),
            "MPLBACKEND": "Agg",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "-1"),
        }

    def pinned(self, command: Sequence[str]) -> list[str]:
        return ["taskset", "-c", ",".join(map(str, self.cores)), *command] if self.cores else list(command)


@dataclass(frozen=True)
class Ended:
    """A process that has ended."""

    status: int
    seconds: float
    """After the imports of TensorFlow and Keras, where the clock has seen them; otherwise the whole."""
    output: str
    cpu: float = 0.0
    """Seconds of the processor in that time; where the machine is busy, these vary less."""
    whole: float = 0.0
    """Seconds with the imports."""

    @property
    def failure(self) -> str:
        """The last lines of a program that failed."""
        return "" if self.status == 0 else f"ended with {self.status}: {self.output[-600:]}"

    @property
    def last_numbers(self) -> tuple[float, ...]:
        """Those of the last line that tells of a loss, a metric or a reward."""
        for line in reversed(re.split(r"[\n\r]+", re.sub(r"\x1b\[[0-9;]*[A-Za-z]|\x08+", " ", self.output))):
            if TELLING.search(line) and (found := NUMBER.findall(line)):
                return tuple(float(number) for number in found)
        return ()


def keras_home(checkouts: Path, full: bool) -> Path:
    """A directory with made data sets, made once."""
    target = checkouts / ("keras-full" if full else "keras-small")
    if not target.is_dir():
        partial = Path(tempfile.mkdtemp(dir=checkouts))
        subprocess.run([sys.executable, STANDINS / "made_data.py", partial, *(["--full"] if full else [])], check=True)
        try:
            partial.rename(target)
        except OSError:  # another process was faster
            shutil.rmtree(partial)
    return target


def plain(program: Program, checkout: Path, setting: Setting, seed: int = 0) -> Ended:
    """The program as it stands in the checkout, timed from the end of its imports to the end of the process."""
    with tempfile.TemporaryDirectory() as directory:
        clock = Path(directory) / "clock"
        environment = {
            **setting.environment(program),
            "FLATOUT_PUBLIC_CLOCK": str(clock),
            "FLATOUT_PUBLIC_SEED": str(seed + 1),
            "PYTHONUNBUFFERED": "1",
        }
        command = [sys.executable, str(checkout / program.path), *program.arguments]
        return started(setting.pinned(command), checkout / program.directory, environment, clock)


def flatout(program: Program, checkout: Path, setting: Setting, verb: Sequence[str]) -> Ended:
    """`flatout VERB program`, in the checkout."""
    command = [sys.executable, "-m", "flatout", *verb, str(checkout / program.path), *program.arguments]
    return started(setting.pinned(command), checkout / program.directory, setting.environment(program))


def pinned_numbers(program: Program, original: Path, patched: Path, setting: Setting) -> str:
    """How the numbers of both agree over their whole runs with pinned random numbers: `verdict: sentence`."""
    command = [sys.executable, str(Path(__file__).with_name("_public_numbers.py")), str(original), str(patched)]
    ended = started(
        setting.pinned([*command, program.path, *program.arguments]),
        original / program.directory,
        setting.environment(program),
    )
    lines = ended.output.strip().splitlines()
    return lines[-1] if ended.status == 0 and lines else f"unknown: {ended.failure[-200:]}"


def started(command: Sequence[str], directory: Path, environment: dict[str, str], clock: Path | None = None) -> Ended:
    with tempfile.TemporaryFile() as output:
        began = first = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            status = 124
        finally:
            ended = time.monotonic()
            end_group(process)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    cpu = 0.0
    if clock is not None and clock.is_file():
        stamps = [line.split() for line in clock.read_text().splitlines()]
        mine = [(when, float(used)) for pid, when, used in stamps if int(pid) == process.pid]
        imported = [(float(when), used) for when, used in mine if when != "end"]
        began, used = max(imported, default=(began, 0.0))
        cpu = max((used for when, used in mine if when == "end"), default=used) - used
    return Ended(status, ended - began, text, cpu, ended - first)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """The process and what it has started; its session has no others."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
