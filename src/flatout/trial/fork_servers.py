"""Fork servers for trials: one for each set of variables that levers need before TensorFlow is imported."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from flatout.process.fence.means import NO_FENCE, NOTHING, Fence, Leave, around, decide
from flatout.process.fork_server import ForkServer, can_fork
from flatout.process.watchdog import Watchdog
from flatout.trial import gpu_sharing, launcher
from flatout.trial.patched_run import program_index

MAIN = launcher.SITE / "fork_server_main.py"
MOST_SERVERS = 4
"""Each holds some hundred megabytes."""
HARMLESS = ("TF_CPP_",)
"""Variables that change what TensorFlow prints, not what it does."""


class ForkServers:
    """The servers of one program. Where there is none for a trial, it is started as a program of its own."""

    def __init__(
        self,
        command: Sequence[str],
        watchdog: Watchdog,
        directory: Path,
        compiled: Path | None = None,
        leave: Leave = NOTHING,
    ) -> None:
        self.command = tuple(command)
        self.watchdog = watchdog
        self.directory = directory
        self.compiled = compiled
        self.leave = leave
        self.packages: Sequence[str] = ("tensorflow",)
        self.changed: dict[str, str | None] = {}
        self._servers: dict[frozenset[tuple[str, str]], ForkServer | None] = {}

    def open(self) -> None:
        """Begin to import before the first trial is started."""
        self.for_variables({})

    def prepare(self, packages: Sequence[str], changed: dict[str, str | None]) -> None:
        """Import what the program imports, under the variables that it sets before."""
        if any(not name.startswith(HARMLESS) for name in changed):
            self.close()
        self.packages, self.changed = packages or self.packages, changed
        self.open()
        for server in self._servers.values():
            if server is not None:
                server.prepare(self.packages)

    def for_variables(self, variables: Mapping[str, str]) -> ForkServer | None:
        key = frozenset(variables.items())
        if key not in self._servers:
            enough = sum(server is not None for server in self._servers.values()) >= MOST_SERVERS
            self._servers[key] = None if enough else self._start(variables)
        server = self._servers[key]
        return None if server is None or server.gone else server

    def close(self) -> None:
        for server in self._servers.values():
            if server is not None:
                server.close()
        self._servers.clear()

    def _start(self, variables: Mapping[str, str]) -> ForkServer | None:
        index = program_index(self.command)
        if index is None or not can_fork():
            return None
        environment = {"PYTHONHASHSEED": "0", **os.environ, **variables}
        for name, value in self.changed.items():
            environment.pop(name, None) if value is None else environment.update({name: value})
        temporary = self.directory / "fork-server"
        temporary.mkdir(parents=True, exist_ok=True)
        environment["TMPDIR"] = str(temporary)  # it may write nowhere else
        environment |= gpu_sharing.variables(environment, self.compiled)  # some are read when TensorFlow is imported
        interpreter, program = self.command[:index], self.command[index]
        try:
            also = (str(self.compiled),) if self.compiled else ()
            fence = around(decide(self.leave), self.directory, also, environment)
            server = start_server(interpreter, program, environment, self.directory, self.watchdog, fence)
        except OSError:
            return None
        server.prepare(self.packages)
        return server


def start_server(
    interpreter: Sequence[str],
    program: str,
    environment: Mapping[str, str],
    directory: Path,
    watchdog: Watchdog,
    fence: Fence = NO_FENCE,
) -> ForkServer:
    """`interpreter`: the command up to the program, such as `python -X dev`. `program`: its file, or `-m`. The fence
    holds what its packages do when they are imported; each trial gets one of its own besides."""
    command = fence.command([*interpreter, str(MAIN), str(launcher.PACKAGE), program])
    return ForkServer(command, launcher.waking_environment(environment), directory / "fork-server.txt", watchdog)
