"""The temporary directory of a trial: `tmp` in its own directory, by a short name where that lies deep.

A socket in a file has room for 107 characters of its path, and programs make sockets in their temporary directory:
managers and fork servers of `multiprocessing`, for example. Where `tmp` has a long path, the program is given a link to
it that stands in the temporary directory of flatout itself. The fence holds what a path leads to, so a link opens
nothing. It is removed when the trial ends, by the watchdog where flatout is killed before.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from hashlib import blake2b
from pathlib import Path

NAME = "tmp"
LONGEST = 60
"""Characters of a path that leave enough for `pymp-abcdefgh/listener-abcdefgh` and the like."""


def make(directory: Path) -> str:
    """The temporary directory of the trial in `directory`, under the name by which the program is to know it."""
    real = directory / NAME
    real.mkdir(parents=True, exist_ok=True)
    link = link_of(directory)
    if not link:
        return str(real)
    with contextlib.suppress(OSError):
        os.symlink(os.path.abspath(real), link)
    return link if _is_own(link, real) else str(real)


def remove_link(directory: Path) -> None:
    link = link_of(directory)
    if link and _is_own(link, directory / NAME):
        with contextlib.suppress(OSError):
            os.unlink(link)


def link_of(directory: Path) -> str:
    """Where the link stands; empty where none is needed, or where it would be no shorter."""
    real = os.path.abspath(directory / NAME)
    if len(os.fsencode(real)) <= LONGEST:
        return ""
    name = f"flatout-{blake2b(os.fsencode(real), digest_size=6).hexdigest()}"
    for place in dict.fromkeys((tempfile.gettempdir(), "/tmp", "/dev/shm")):
        link = os.path.join(place, name)
        if len(link) <= LONGEST and link.isascii() and " " not in link and os.access(place, os.W_OK | os.X_OK):
            return link
    return ""


def _is_own(link: str, real: Path) -> bool:
    """Not one that somebody else has put there."""
    try:
        return os.lstat(link).st_uid == os.getuid() and os.readlink(link) == os.path.abspath(real)
    except OSError:
        return False
