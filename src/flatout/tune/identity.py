"""What a tune was made of: the program's own files, by content, and the versions of flatout and TensorFlow.

`--resume` reuses trials of an earlier process. They only hold for the program that they ran.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from flatout.environment import packages
from flatout.model.version import __version__

PACKAGES = ("tensorflow", "tensorflow-cpu", "tf-nightly", "keras", "tf_keras")
MOST_FILES = 5000
SOURCES = (".py", ".pyz", ".sh", ".cfg", ".gin", ".ini", ".json", ".toml", ".yaml", ".yml")
GONE = "gone"
"""In place of the digest of a file that cannot be read."""


def identity_of(command: Sequence[str], directory: Path) -> dict[str, Any]:
    """The identity to write down, from the recording of the scouting run in `directory`."""
    files = _imported(directory) or _beside(command)
    return {"versions": versions(), "files": {path: _digest(path) for path in sorted({*_named(command), *files})}}


def changes_since(identity: object) -> list[str]:
    """What differs today, in words; an identity that was not written down differs."""
    if not isinstance(identity, dict) or not isinstance(identity.get("files"), dict):
        return ["another version of flatout began it"]
    found = []
    now, then = versions(), identity.get("versions")
    for name in sorted({*now, *(then if isinstance(then, dict) else {})}):
        before = then.get(name, "none") if isinstance(then, dict) else "none"
        if before != now.get(name, "none"):
            found.append(f"{name} {before} is now {now.get(name, 'none')}")
    for path, digest in identity["files"].items():
        today = _digest(path)
        if today != digest:
            found.append(f"{os.path.relpath(path)} {'is gone' if today == GONE else 'was changed'}")
    return found


def files_of(command: Sequence[str]) -> dict[str, str]:
    """The program's own files as far as they are known before it has run, with their digests."""
    return {path: _digest(path) for path in sorted({*_named(command), *_beside(command)})}


def _imported(directory: Path) -> list[str]:
    """The files of the program that the scouting run had imported when it ended."""
    from flatout.observe.reading.recording import load

    facts = load(directory).all("source-files")
    return [path for fact in facts for path in fact.get("files", ()) if isinstance(path, str)][:MOST_FILES]


def _beside(command: Sequence[str]) -> list[str]:
    """In place of that, where the run was killed: the Python files next to the program."""
    folders = {os.path.dirname(path) for path in _named(command)} or {os.getcwd()}
    return [str(path) for folder in folders for path in sorted(Path(folder).glob("*.py"))][:MOST_FILES]


def _named(command: Sequence[str]) -> Iterable[str]:
    """The program's file, and any other file of Python or of settings that its command line names."""
    words = (os.path.abspath(word) for word in command[1:] if not word.startswith("-"))
    return [word for word in words if word.endswith(SOURCES) and os.path.isfile(word)]


def versions() -> dict[str, str]:
    return {"flatout": __version__, **packages.versions(PACKAGES)}


def _digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return GONE
