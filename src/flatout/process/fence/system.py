"""System calls that Python does not offer. Imports the standard library only."""

from __future__ import annotations

import ctypes
import os
from typing import Any

NO_NEW_PRIVILEGES = 38
NEW_USERS, NEW_NETWORK, NEW_MOUNTS = 0x10000000, 0x40000000, 0x00020000

_system = ctypes.CDLL(None, use_errno=True)


def call(number: int, *arguments: Any) -> int:
    """Raises OSError."""
    return _checked(_system.syscall(ctypes.c_long(number), *arguments))


def keep_privileges_low() -> None:
    """No program that is started from here on gains rights, as `sudo` would: the kernel asks for it."""
    _checked(_system.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))


def unshare(spaces: int) -> None:
    """Namespaces of its own for this process; one of users too, where it needs that to be allowed the others."""
    try:
        _checked(_system.unshare(spaces))
        return
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
    _checked(_system.unshare(NEW_USERS | spaces))
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as stream:
            stream.write(text)


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    words = [word.encode(errors="surrogateescape") for word in (source, target, kind, options)]
    _checked(_system.mount(words[0], words[1], words[2] or None, ctypes.c_ulong(flags), words[3] or None))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
