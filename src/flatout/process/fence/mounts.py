"""After `read_only`, this process and its children see every file system as one that cannot be written.

It needs a namespace of mounts, which many containers refuse; there Landlock stands alone. Together they hold more:
Landlock has no say about modes, owners and times of files. Some directories may be shown as copies instead, which can
be written by every program: what is written is kept in memory, and is gone with the last process that sees it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

from flatout.process.fence import system

_SET_ATTRIBUTES = 442  # the same number on every architecture
_HERE, _RECURSIVE, _READ_ONLY = -100, 0x8000, 1
_BIND, _PRIVATE = 4096, (1 << 18) | 16384


class _Attributes(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "user_namespace"))


def read_only(writable: Sequence[str], copied: Sequence[str] = ()) -> None:
    """All but these directories, which may be missing, and those that are `copied`. Raises OSError where the kernel
    refuses; the process must be in a namespace of its own (`system.unshare`)."""
    here = os.getcwd()
    system.mount("none", "/", "", _PRIVATE)
    places = {path: os.open(path, os.O_PATH) for path in writable if os.path.isdir(path)}
    if copied:
        _copy(copied, next(iter(places)))
    for path, real in places.items():
        system.mount(f"/proc/self/fd/{real}", path, "", _BIND)
        os.close(real)
    _change("/", _Attributes(set=_READ_ONLY), _RECURSIVE)
    for path in [*places, *copied, "/proc", "/dev/shm", "/dev/pts", "/dev/mqueue"]:
        if path in places or path in copied or os.path.ismount(path):
            _change(path, _Attributes(clear=_READ_ONLY))
    os.chdir(here)  # where it is one of them, as it is seen now


def _copy(directories: Sequence[str], over: str) -> None:
    """`over`: a directory on which memory can be mounted until the real one is mounted there again."""
    system.mount("none", over, "tmpfs", 0, "mode=700")
    for number, directory in enumerate(directories):
        upper, work = f"{over}/{number}", f"{over}/{number}-work"
        for path in (upper, work):
            os.mkdir(path)
        os.chmod(upper, os.stat(directory).st_mode & 0o7777)
        options = f"lowerdir={directory},upperdir={upper},workdir={work}"
        try:
            system.mount("overlay", directory, "overlay", 0, f"{options},userxattr")
        except OSError:
            system.mount("overlay", directory, "overlay", 0, options)


def _change(path: str, attributes: _Attributes, flags: int = 0) -> None:
    system.call(
        _SET_ATTRIBUTES,
        ctypes.c_int(_HERE),
        os.fsencode(path),
        ctypes.c_uint(flags),
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )
