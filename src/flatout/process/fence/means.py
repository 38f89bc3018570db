"""Decides by what a trial is fenced on this machine: the one place that knows.

| what is held | by | where |
|---|---|---|
| writes | Landlock 2 and later | Linux 5.19 and later, containers included |
| writes | Landlock 1; files that move between directories are copied | Linux 5.13 to 5.18, without namespaces |
| writes, modes, owners, times | file systems mounted read-only | as root, or where users may make namespaces |
| writes of commands that are no Python program: into a copy | overlayfs on the working directory | the same |
| network | a namespace with a loopback of its own | as root, or where users may make namespaces |
| network | a filter of system calls; loopback is refused too | elsewhere: most containers |
| processes | a mark that all of them inherit | Linux |

Where something cannot be held, nothing is run: the user is told, and may ask for less (`--unfenced`, `--network`).
"""

from __future__ import annotations

import functools
import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from flatout.model.errors import CannotFence
from flatout.process.fence import main
from flatout.process.fence.landlock import FIRST

PROBE_SECONDS = 60.0
COMPILER_CACHES = ("~/.nv", "~/.triton", "~/.cache/torch_extensions", "~/.cache/jax", "~/.cache/tensorflow")
"""Compilers load the libraries that they have cached by ways of their own; such a cache is nobody's file."""
CACHE_VARIABLES = ("CUDA_CACHE_PATH", "TRITON_CACHE_DIR")


@dataclass(frozen=True)
class Means:
    """What this kernel can do."""

    landlock: int = 0
    """Its version; 0: there is none."""
    mounts: bool = False
    copies: bool = False
    """Whether directories can be shown as copies to write to."""
    namespace: bool = False
    filter: bool = False


@dataclass(frozen=True)
class Leave:
    """What the user lets trials do."""

    unfenced: bool = False
    """Write by ways that flatout cannot redirect."""
    network: bool = False


NOTHING = Leave()


@dataclass(frozen=True)
class Fence:
    """What is put up around one trial: the arguments of `main.put_up`."""

    writable: tuple[str, ...] = ()
    landlock: int = 0
    mounts: bool = False
    network: Literal["namespace", "filter", ""] = ""
    mark: int = 0
    copied: tuple[str, ...] = ()
    """Directories that every program of the trial sees as copies, and may write."""

    @property
    def held(self) -> bool:
        """Whether the kernel holds writes."""
        return bool(self.landlock or self.mounts)

    @property
    def moves(self) -> bool:
        """Whether files may move from one directory to another."""
        return self.landlock != FIRST

    def command(self, words: Sequence[str]) -> list[str]:
        """The command that puts up the fence and becomes this one."""
        return [sys.executable, "-I", "-S", main.__file__, json.dumps(asdict(self)), *words]


NO_FENCE = Fence()


@functools.cache
def means() -> Means:
    """Tried out, once."""
    if sys.platform != "linux":
        return Means()
    try:
        command = [sys.executable, "-I", "-S", main.__file__]
        done = subprocess.run(command, capture_output=True, timeout=PROBE_SECONDS, check=True)
        return Means(**json.loads(done.stdout))
    except (OSError, subprocess.SubprocessError, ValueError, TypeError):
        return Means()


def decide(leave: Leave, held: Means | None = None) -> Fence:
    """The fence of every trial of a command. Raises `CannotFence` where the kernel cannot do what is asked."""
    held = means() if held is None else held
    if not leave.unfenced and not held.landlock and not held.mounts:
        raise CannotFence(
            "This kernel cannot keep trials from writing your files: it has no Landlock (Linux 5.13 and later have it, "
            "unless it is switched off by the parameter `lsm=`), and it allows no namespaces here. What a trial "
            "writes by Python and TensorFlow is redirected all the same; --unfenced runs trials with that alone."
        )
    network: Literal["namespace", "filter", ""] = "namespace" if held.namespace else "filter" if held.filter else ""
    if not network and not leave.network and not leave.unfenced:
        raise CannotFence(
            "This kernel cannot keep trials off the network: it offers neither a network namespace nor a filter of "
            "system calls. --network lets trials use the network."
        )
    landlock = 0 if held.mounts and held.landlock == FIRST else held.landlock
    files = Fence() if leave.unfenced else Fence(landlock=landlock, mounts=held.mounts)
    return replace(files, network="" if leave.network else network)


def around(fence: Fence, directory: Path, also: Sequence[str], environment: Mapping[str, str]) -> Fence:
    """The fence of one trial: what it may write, and the mark of its processes."""
    return replace(fence, writable=writable(directory, also, environment), mark=_new_mark())


def writable(directory: Path, also: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Its own directory and the caches of compilers."""
    caches = [os.path.expanduser(path) for path in COMPILER_CACHES]
    caches += [environment[name] for name in CACHE_VARIABLES if environment.get(name)]
    return tuple(os.path.realpath(path) for path in (str(directory), *also, *caches))


def with_copy(fence: Fence, directory: str) -> Fence:
    """The same, with a directory that other programs than Python may write too, where the kernel offers that."""
    directory = os.path.realpath(directory)
    plain = not set(directory) & set(',:\\"') and directory != "/"
    if not (fence.mounts and means().copies and plain) or _has_mounts(directory):
        return fence
    return replace(fence, copied=(directory,))


def _has_mounts(directory: str) -> bool:
    """Other file systems below a directory would be missing from its copy."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as stream:
            return any(line.split()[4].startswith(f"{directory}/") for line in stream)
    except (OSError, IndexError):
        return True


def _new_mark() -> int:
    """A number that no other process has as its limit. 0 where this system has no such limit."""
    try:
        import resource

        most = resource.getrlimit(main.UNIMPORTANT)[1]
    except (ImportError, ValueError, OSError):
        return 0
    most = most if most > 0 else 1 << 60  # unlimited is -1
    return random.SystemRandom().randrange(most // 2, most) if most > 1 << 20 else 0
