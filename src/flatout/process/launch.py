"""Starts a child in a process group of its own, with its output in a file."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def start(
    command: Sequence[str],
    environment: Mapping[str, str],
    output: Path,
    *,
    append: bool = False,
    descriptors: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start it without input. `descriptors` stay open in it, under the same numbers.

    A group of its own: Ctrl-C in the terminal does not reach it, and `kill_group` ends all that it has started.
    """
    with open(output, "ab" if append else "wb") as stream:
        return subprocess.Popen(
            list(command),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            pass_fds=tuple(descriptors),
            start_new_session=True,
        )
