"""Puts up the fence and becomes the program: `python -I -S main.py FENCE COMMAND…`, with FENCE as JSON.

It fails closed: where a part of the fence cannot be put up, the program is not run. `python main.py` alone tries out
what this kernel can do and prints it as JSON. It runs for each trial, so it imports as little as it can.
"""

from __future__ import annotations

import json
import os
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

FAILED = 97
"""The exit code where the fence could not be put up."""
UNIMPORTANT = 10
"""RLIMIT_LOCKS. Linux has had no use for this limit since 2.4, but every process inherits it: it marks a trial's."""

_HERE = os.path.dirname(os.path.abspath(__file__))


def _without_initialising() -> None:
    """Make modules of this package importable here without what `flatout/__init__.py` imports."""
    for name, up in (("flatout", "../.."), ("flatout.process", ".."), ("flatout.process.fence", ".")):
        package = types.ModuleType(name)
        package.__path__ = [os.path.normpath(os.path.join(_HERE, up))]
        sys.modules[name] = package


def put_up(
    writable: Sequence[str], landlock: int, mounts: bool, network: str, mark: int, copied: Sequence[str] = ()
) -> None:
    """In this process, for it and its children. Raises, and then the program must not run.

    `landlock`: the version that holds files; 0: it does not. `mounts`: whether a namespace of mounts holds them as
    well; those of directories that are `copied` may be written, in memory. `network`: "namespace", "filter", or ""
    where it is not held.
    """
    from flatout.process.fence import landlock as files
    from flatout.process.fence import mounts as systems
    from flatout.process.fence import sockets, system

    if network not in ("namespace", "filter", ""):
        raise ValueError(f"there is no {network!r} that holds the network")
    if mark:
        carry(mark)
    spaces = (system.NEW_MOUNTS if mounts else 0) | (system.NEW_NETWORK if network == "namespace" else 0)
    if spaces:
        system.unshare(spaces)
    if network == "namespace":
        sockets.raise_loopback()
    if mounts:
        systems.read_only(writable, copied)
    if landlock:
        files.restrict([*writable, *copied], landlock)
    if network == "filter":
        sockets.no_network()


def carry(mark: int) -> None:
    """Mark this process and all that come from it, whatever sessions and groups they make."""
    import resource

    resource.setrlimit(UNIMPORTANT, (mark, resource.getrlimit(UNIMPORTANT)[1]))


def _become(command: list[str]) -> None:
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"flatout: {command[0]} cannot be started: {error.strerror}\n")
        os._exit(126)


# ── trying out ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _tried() -> dict[str, Any]:
    from flatout.process.fence import landlock

    version = landlock.version()
    return {
        "mounts": _holds(_mounts_are_held),
        "copies": _holds(_copies_are_written),
        "landlock": version if version and _holds(lambda: _files_are_held(version)) else 0,
        "namespace": _holds(lambda: _loopback_is_left()),
        "filter": _holds(lambda: _no_socket_is_left()),
    }


def _holds(attempt: Callable[[], bool]) -> bool:
    """Try in a process of its own."""
    child = os.fork()
    if child == 0:
        held = False
        try:
            held = attempt()
        finally:
            os._exit(0 if held else 1)
    return os.waitpid(child, 0)[1] == 0


def _files_are_held(version: int) -> bool:
    put_up((), version, False, "", 0)
    place = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"flatout-{os.getpid()}")
    try:
        os.mkdir(place)
    except OSError:
        return True
    os.rmdir(place)
    return False


def _mounts_are_held() -> bool:
    put_up((), 0, True, "", 0)
    return bool(os.statvfs(_HERE).f_flag & os.ST_RDONLY)


def _copies_are_written() -> bool:
    """On this directory, with memory mounted on another for as long as that takes."""
    put_up(("/dev/shm" if os.path.isdir("/dev/shm") else "/tmp",), 0, True, "", 0, (_HERE,))
    path = os.path.join(_HERE, f"flatout-{os.getpid()}")
    os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    os.unlink(path)
    return True


def _loopback_is_left() -> bool:
    import socket

    put_up((), 0, False, "namespace", 0)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.settimeout(1)
        client.connect(server.getsockname())
    return True


def _no_socket_is_left() -> bool:
    import socket

    put_up((), 0, False, "filter", 0)
    try:
        socket.socket(socket.AF_INET).close()
    except OSError:
        return True
    return False


def _main(words: list[str]) -> None:
    _without_initialising()
    if not words:
        sys.stdout.write(json.dumps(_tried()))
        return
    try:
        put_up(**json.loads(words[0]))
    except Exception as error:
        sys.stderr.write(
            f"flatout: the fence of this trial could not be put up ({error}), so the program was not run. "
            "--unfenced runs trials without it.\n"
        )
        sys.stderr.flush()
        os._exit(FAILED)
    _become(words[1:])


if __name__ == "__main__":
    _main(sys.argv[1:])
