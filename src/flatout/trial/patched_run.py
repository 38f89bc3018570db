"""Running a program with a patch that is not applied: its files stay as they are, the child runs the new texts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from flatout.trial import launcher
from flatout.trial.patch import Patch

MAIN = launcher.SITE / "patched_main.py"


def lay_out(patch: Patch, directory: Path) -> dict[str, str]:
    """Write the new texts into a directory: what `command` and `Launch.sources` take."""
    directory.mkdir(parents=True, exist_ok=True)
    sources = {}
    for number, change in enumerate(patch.changes):
        file = directory / f"{number}-{os.path.basename(change.path)}"
        file.write_bytes(change.after)
        sources[os.path.abspath(change.path)] = str(file.resolve())
    return sources


def as_it_is(words: Sequence[str]) -> dict[str, str]:
    """The sources with which a command runs the program's file as it is, in the way that patched ones run."""
    index = program_index(words)
    return {} if index is None else {os.path.abspath(words[index]): os.path.abspath(words[index])}


def command(words: Sequence[str], sources: Mapping[str, str]) -> list[str]:
    """`python train.py --epochs 3` → the command that runs it with these sources in place of its own.

    A command that is not a Python on a file or a module is left as it is.
    """
    words = list(words)
    index = program_index(words)
    if not sources or index is None:
        return words
    return [*words[:index], str(MAIN), json.dumps(dict(sources)), *words[index:]]


def program_index(words: Sequence[str]) -> int | None:
    """Where in a Python command line the program begins: its file, or `-m`. None where it is not such a command."""
    if not words or not re.match(r"python[\d.]*(\.exe)?$", os.path.basename(words[0])):
        return None
    index = 1
    while index < len(words):
        word = words[index]
        if word == "-m":
            return index if index + 1 < len(words) else None
        if not word.startswith("-"):
            return index if os.path.isfile(word) and not word.endswith((".zip", ".pyz")) else None
        if word in ("-", "-c") or word.startswith("-c"):
            return None
        index += 2 if word in ("-W", "-X", "--check-hash-based-pycs") else 1
    return None
