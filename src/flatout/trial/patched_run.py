"""Running a program with a patch that is not applied: its files stay as they are, the child runs the new texts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from flatout.trial.patch import Patch

MAIN = Path(__file__).parent / "site" / "patched_main.py"


def lay_out(patch: Patch, directory: Path) -> dict[str, str]:
    """Write the new texts into a directory: what `command` and the setting `sources` take."""
    directory.mkdir(parents=True, exist_ok=True)
    sources = {}
    for number, change in enumerate(patch.changes):
        file = directory / f"{number}-{os.path.basename(change.path)}"
        file.write_bytes(change.after)
        sources[os.path.abspath(change.path)] = str(file.resolve())
    return sources


def command(words: Sequence[str], sources: Mapping[str, str]) -> list[str]:
    """`python train.py --epochs 3` → the command that runs it with these sources in place of its own.

    A command that is not a Python on a file or a module is left as it is.
    """
    words = list(words)
    place = program_place(words)
    if not sources or place is None:
        return words
    return [*words[:place], str(MAIN), json.dumps(dict(sources)), *words[place:]]


def program_place(words: Sequence[str]) -> int | None:
    if not words or not re.match(r"python[\d.]*(\.exe)?$", os.path.basename(words[0])):
        return None
    place = 1
    while place < len(words):
        word = words[place]
        if word == "-m":
            return place if place + 1 < len(words) else None
        if not word.startswith("-"):
            return place if os.path.isfile(word) and not word.endswith((".zip", ".pyz")) else None
        if word in ("-", "-c") or word.startswith("-c"):
            return None
        place += 2 if word in ("-W", "-X", "--check-hash-based-pycs") else 1
    return None
