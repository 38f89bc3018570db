"""Runs programs in forks of one process that has imported TensorFlow and both Keras, which takes longer than most of
them. A fork has the output, the environment, the directory and the `__main__` of a process of its own; what it does not
do again is the import. Variables that matter while TensorFlow is imported need a process of their own.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from observed import environment, execute

PACKAGES = ("tensorflow", "keras", "tf_keras")
SECONDS = 400.0
START = f"import sys; sys.path.append({str(Path(__file__).parent)!r}); import forked; forked.serve(globals())"


# ── the tests' side ──────────────────────────────────────────────────────────────────────────────────────────────────


class Server:
    """Ends with the process of the tests: its orders come through a pipe from it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", START],
            env=environment(PYTHONHASHSEED="0"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.hindrance = self._answer()

    def run(self, **request: Any) -> int:
        """The exit code, as `subprocess` has it."""
        from processor_time import elsewhere

        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        code, seconds = self._answer()
        elsewhere.append(seconds)
        return int(code)

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], SECONDS)[0]:
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
            server.cache_clear()
            raise AssertionError(f"no answer within {SECONDS:.0f} s")
        line = self.process.stdout.readline()
        assert line, "the process that forks has ended"
        return json.loads(line)


@functools.cache
def server() -> Server:
    """One serves all files that a process of the tests runs."""
    return Server()


def run(program: Path, *arguments: str, directory: Path, settings: str = "", **variables: str) -> tuple[int, str, str]:
    """The program's exit code and output. `settings`: how it is observed, as `flatout.process.messages` encodes it."""
    ours = server()
    if ours.hindrance:
        return _started(program, *arguments, directory=directory, settings=settings, **variables)
    with tempfile.TemporaryDirectory() as place:
        code = ours.run(
            arguments=[str(program), *arguments],
            directory=str(directory),
            environment=environment(**variables),
            settings=settings,
            output=[f"{place}/out", f"{place}/err"],
        )
        out, err = (Path(place, name).read_text(errors="replace") for name in ("out", "err"))
    return code, out, err


def _started(program: Path, *arguments: str, directory: Path, settings: str, **variables: str) -> tuple[int, str, str]:
    """Where nothing can be forked: as a process of its own."""
    from flatout.trial import launcher

    wanted = environment(**variables)
    if settings:
        wanted = {**launcher.waking_environment(wanted), "FLATOUT_OBSERVE": settings}
    done = execute([sys.executable, program, *arguments], directory, env=wanted)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr


# ── the server's side ────────────────────────────────────────────────────────────────────────────────────────────────


def serve(namespace: dict[str, Any]) -> None:
    """Returns in each fork, once its program has run."""
    before = os.environ.copy()
    gc.disable()  # as the fork servers of trials do
    for name in PACKAGES:
        importlib.import_module(name)
    set_by_imports = {name: value for name, value in os.environ.items() if before.get(name) != value}
    from flatout.process import forking
    from flatout.trial import launcher
    from flatout.trial.child import start

    sys.path.append(str(launcher.SITE))
    main = importlib.import_module("patched_main")
    del sys.path[-2:]  # nor the directory of this file
    gc.freeze()  # this is no garbage: a fork that looks through it copies its pages, and takes a second for that
    gc.enable()
    _tell(forking._hindrance())
    for line in iter(sys.stdin.readline, ""):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 3.12 warns of any fork in a process that ever had threads
            pid = os.fork()
        if pid == 0:
            request = json.loads(line)
            _become(request, set_by_imports)
            if request["settings"]:
                start.start(request["settings"], time.perf_counter())
            main.run(request["arguments"], namespace)
            return
        _, status, used = os.wait4(pid, 0)
        _tell([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime])


def _tell(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()  # a fork would write it again


def _become(request: dict[str, Any], set_by_imports: dict[str, str]) -> None:
    files = [os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) for name in request["output"]]
    for source, target in zip([os.open(os.devnull, os.O_RDONLY), *files], (0, 1, 2), strict=True):
        os.dup2(source, target)
        os.close(source)
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update({**request["environment"], **set_by_imports})
    tempfile.tempdir = None  # it goes by the variables of before
