"""After `read_only`, this process and its children see every file system as one that cannot be written.

It needs a namespace of mounts, which many containers refuse; there Landlock stands alone. Together they hold more:
Landlock has no say about modes, owners and times of files.
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


def read_only(writable: Sequence[str]) -> None:
    """All but these directories, which may be missing. Raises OSError where the kernel refuses; the process must be
    in a namespace of its own (`system.unshare`)."""
    here = os.getcwd()
    system.mount("none", "/", "", _PRIVATE)
    places = [path for path in writable if os.path.isdir(path)]
    for path in places:
        system.mount(path, path, "", _BIND)
    _change("/", _Attributes(set=_READ_ONLY), _RECURSIVE)
    for path in [*places, "/proc", "/dev/shm", "/dev/pts", "/dev/mqueue"]:
        if path in places or os.path.ismount(path):
            _change(path, _Attributes(clear=_READ_ONLY))
    os.chdir(here)  # where it is one of them, as it is seen now


def _change(path: str, attributes: _Attributes, flags: int = 0) -> None:
    system.call(
        _SET_ATTRIBUTES,
        ctypes.c_int(_HERE),
        os.fsencode(path),
        ctypes.c_uint(flags),
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )
