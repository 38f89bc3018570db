"""After `restrict`, the kernel lets this process and its children write below the given directories only.

Linux 5.13 and later offer it to every process, in containers too (Landlock). A write elsewhere is "permission denied".
The first version (5.13 to 5.18) also denies every rename from one directory to another: see `FIRST`.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Iterator, Sequence

from flatout.process.fence import system

FIRST = 1
"""Of this version, files cannot be moved between directories; `trial/child` copies them instead."""

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every architecture
_WRITE = 1 << 1
_MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_SIGNALS, _SCOPES = 2, 6
"""Version 6 also keeps signals to the processes of the trial."""
_NEVER = {"mem", "kmem", "port"}


class _Below(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """Of Landlock in this kernel; 0: it has none."""
    try:
        return system.call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    except OSError:
        return 0


def restrict(writable: Sequence[str], of: int) -> None:
    """`of`: the version to use. Raises OSError, and then nothing may be run."""
    rights = _WRITE | _MAKE_AND_REMOVE | (_REFER if of >= 2 else 0) | (_TRUNCATE if of >= 3 else 0)
    handled = (ctypes.c_uint64 * 3)(rights, 0, _SIGNALS)  # files, network, scopes
    size = ctypes.sizeof(handled) if of >= _SCOPES else ctypes.sizeof(ctypes.c_uint64)
    rules = system.call(_CREATE, ctypes.byref(handled), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for path in [*writable, "/proc", *_devices("/dev")]:
            _allow(rules, path, rights)
        system.keep_privileges_low()
        system.call(_RESTRICT, ctypes.c_int(rules), ctypes.c_uint32(0))
    finally:
        os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what cannot be opened cannot be written either
    try:
        if not stat.S_ISDIR(os.fstat(parent).st_mode):
            rights &= _WRITE | _TRUNCATE
        below = _Below(rights, parent)
        system.call(_ADD, ctypes.c_int(rules), ctypes.c_int(1), ctypes.byref(below), ctypes.c_uint32(0))
    finally:
        os.close(parent)


def _devices(directory: str, deep: int = 2) -> Iterator[str]:
    """Terminals, GPUs, /dev/null and shared memory; no disks."""
    try:
        entries = list(os.scandir(directory))
    except OSError:
        return
    for entry in entries:
        try:
            mode = entry.stat().st_mode
        except OSError:
            continue
        if stat.S_ISDIR(mode):
            if entry.name in ("shm", "pts", "mqueue"):
                yield entry.path
            elif deep > 1 and not entry.is_symlink():
                yield from _devices(entry.path, deep - 1)
        elif stat.S_ISCHR(mode) and entry.name not in _NEVER:
            yield entry.path
