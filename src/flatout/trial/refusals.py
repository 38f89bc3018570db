"""Why a trial failed, where the fence is the likely reason: what the program printed says so, if anything does."""

from __future__ import annotations

import re
from pathlib import Path

from flatout.process.output import last_line

NO_NETWORK = "a trial of flatout has no network; --network gives it one"
"""In errors that flatout raises in Python itself."""

_WRITES = re.compile(r"Permission ?denied|PERMISSION_DENIED|Read-only file system|Errno 13\b|unable to open database")
_NETWORK = re.compile(
    r"Network is unreachable|Name or service not known|[Tt]emporary failure in name resolution|Could not resolve host"
    r"|Couldn't resolve host|nodename nor servname|Errno 101\b|getaddrinfo failed|Address family not supported"
)
_TAIL_BYTES = 8000


def last_words(output: Path, longest: int = 200) -> str:
    """The last line that a trial has printed, and what the fence may have to do with it."""
    line = last_line(output, longest)
    hint = hint_in(_tail(output))
    return f"{line} ({hint})" if line and hint and hint not in line and "flatout: " not in line else line


def hint_in(text: str) -> str:
    """What to do about a failure that this output shows; empty where the fence has no part in it."""
    if NO_NETWORK in text or _NETWORK.search(text):
        return NO_NETWORK
    if _WRITES.search(text):
        return (
            "a trial of flatout writes copies of the user's files; a write that it cannot redirect, such as another "
            "program's, is refused, unless --unfenced is given"
        )
    return ""


def _tail(output: Path) -> str:
    try:
        with open(output, "rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - _TAIL_BYTES))
            return stream.read().decode("utf-8", "replace")
    except OSError:
        return ""
