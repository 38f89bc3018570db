"""Keeps `.flatout` to its owner: a case holds source lines, paths, command lines and variables.

Directories are made with mode 0700 and files end with 0600 (0700 where they can be executed). What an older version has
left readable is closed when the next case is begun. The umask stays as it is, because the user's program inherits it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_private(directory: Path) -> None:
    """Make a directory, and those above it that are missing; close it where others can read it."""
    for one in (*reversed([parent for parent in directory.parents if not parent.exists()]), directory):
        one.mkdir(mode=0o700, exist_ok=True)
    _close(os.fspath(directory))


def private(path: str, flags: int) -> int:
    """The `opener` of a file that only its owner may read."""
    return os.open(path, flags, 0o600)


def close(directory: Path) -> None:
    """Take from all others what they may do with a directory and everything below it. Links are not followed."""
    for folder, _, files in os.walk(directory, followlinks=False):
        _close(folder)
        for name in files:
            _close(os.path.join(folder, name))


def is_open(directory: Path) -> bool:
    try:
        return bool(directory.stat().st_mode & OTHERS)
    except OSError:
        return False


def _close(path: str) -> None:
    """A file of somebody else, or of a file system without modes, stays as it is."""
    try:
        mode = os.lstat(path).st_mode
        if mode & OTHERS and not stat.S_ISLNK(mode):
            os.chmod(path, stat.S_IMODE(mode) & ~OTHERS)
    except OSError:
        pass
