"""After `fence`, the kernel lets this process and its children write below the given directories only.

It covers what Python cannot redirect: C++ libraries that open files themselves, and other programs that the user's
program starts. They get "permission denied". Linux 5.13 and later offer it to every process (Landlock); elsewhere
`fence` does nothing and returns False.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every architecture
_WRITE = 1 << 1
_MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_NO_NEW_PRIVILEGES = 38


class _Below(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def fence(writable: Sequence[str]) -> bool:
    """Returns whether the kernel enforces it."""
    system = ctypes.CDLL(None, use_errno=True)
    version = system.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    if version < 1:
        return False
    rights = _WRITE | _MAKE_AND_REMOVE | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    handled = ctypes.c_uint64(rights)
    rules = system.syscall(_CREATE, ctypes.byref(handled), ctypes.c_size_t(8), ctypes.c_uint32(0))
    if rules < 0:
        return False
    try:
        for path in writable:
            if os.path.isdir(path) and not _allow(system, rules, path, rights):
                return False
        if system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
            return False
        return bool(system.syscall(_RESTRICT, rules, ctypes.c_uint32(0)) == 0)
    finally:
        os.close(rules)


def _allow(system: ctypes.CDLL, rules: int, path: str, rights: int) -> bool:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return True  # what cannot be opened cannot be written either
    try:
        below = _Below(rights, parent)
        return bool(system.syscall(_ADD, rules, ctypes.c_int(1), ctypes.byref(below), ctypes.c_uint32(0)) == 0)
    finally:
        os.close(parent)
