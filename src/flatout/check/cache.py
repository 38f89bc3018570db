"""A cache of the results by the hash of a file's content, so that unchanged files are not checked again.

It is one JSON file in `.flatout/check/`, which becomes invalid when flatout, the selected patterns or the version of
TensorFlow change. It is not pickled: a cache that came with a repository must not be able to run code.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from flatout import causes
from flatout.check.checker import Outcome
from flatout.model.version import __version__
from flatout.source import repairs
from flatout.source.analysis.patterns import Diagnostic
from flatout.store import permissions

DIRECTORY = Path(".flatout") / "check"
_FORMAT = 4


def fingerprint(patterns: Iterable[str], version: tuple[int, ...], in_tests: bool) -> str:
    """Identifies everything but the text that affects the results."""
    made = hashlib.blake2b(digest_size=16)
    package = Path(__file__).parent.parent
    folders = [package / "check", package / "source", package / "source/analysis", *map(Path, causes.__path__)]
    for folder in folders:
        for file in sorted(os.scandir(folder), key=lambda entry: entry.name):
            if file.name.endswith(".py"):
                facts = file.stat()
                made.update(f"{file.name} {facts.st_size} {facts.st_mtime_ns};".encode())
    made.update(f"{_FORMAT} {__version__} {version} {in_tests} {','.join(sorted(patterns))}".encode())
    return made.hexdigest()


def key(content: bytes, path: str, pinned: tuple[int, int] | None = None) -> str:
    """Identifies a file. The path is part of it, as tests and notebooks are treated differently, and so is the
    TensorFlow that its project asks for."""
    made = hashlib.blake2b(content, digest_size=16)
    made.update(repr(pinned).encode())
    made.update(path.encode("utf-8", "surrogateescape"))
    return made.hexdigest()


class Cache:
    def __init__(self, root: Path, mark: str) -> None:
        self._file = root / DIRECTORY / "cache.json"
        self._mark = mark
        self._known: dict[str, Any] = {}
        self._used: dict[str, Any] = {}
        self._changed = False
        try:
            data = json.loads(self._file.read_bytes())
            if data.get("mark") == mark and isinstance(data.get("files"), dict):
                self._known = data["files"]
        except (OSError, ValueError, AttributeError, RecursionError):
            pass

    def get(self, name: str) -> Outcome | None:
        found = self._known.get(name)
        if found is None:
            return None
        try:
            outcome = _outcome(found)
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
            return None
        self._used[name] = found
        return outcome

    def put(self, name: str, outcome: Outcome) -> None:
        self._used[name] = _plain(outcome)
        self._changed = True

    def save(self) -> None:
        """Write the cache, without files that are gone, unless only a few files were checked."""
        if not self._changed:
            return
        kept = self._used if len(self._used) * 2 > len(self._known) else {**self._known, **self._used}
        try:
            permissions.make_private(self._file.parent)
            ignore = self._file.parents[1] / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n", encoding="utf-8")
            temporary = self._file.with_suffix(f".{os.getpid()}")
            temporary.write_text(json.dumps({"mark": self._mark, "files": kept}, separators=(",", ":")))
            temporary.replace(self._file)
        except OSError:
            pass  # a directory that cannot be written to is checked without a cache


def _plain(outcome: Outcome) -> Any:
    if not (
        outcome.diagnostics
        or outcome.problem
        or outcome.remarks
        or outcome.traced
        or outcome.version_one
        or outcome.relevant
    ):
        return outcome.lines
    found = [_diagnostic_data(item) for item in outcome.diagnostics]
    states = (outcome.version_one, outcome.relevant, outcome.version_two, outcome.fails_with_two)
    return [outcome.lines, outcome.problem, outcome.traced, outcome.imports, found, outcome.remarks, *states]


def _diagnostic_data(item: Diagnostic) -> dict[str, Any]:
    return {**asdict(item), "repair": item.repair.to_json() if item.repair is not None else None}


def _outcome(data: Any) -> Outcome:
    if isinstance(data, int):
        return Outcome(lines=data)
    lines, problem, traced, imports, diagnostics, told, *states = data
    found = [_diagnostic(item) for item in diagnostics]
    one, relevant, two, fails = (bool(state) for state in states)
    names = [str(name) for name in traced]
    others = [str(name) for name in imports]
    remarks = [(str(place), str(text)) for place, text in told]
    return Outcome(found, str(problem), names, int(lines), one, relevant, two, fails, others, remarks)


def _diagnostic(data: dict[str, Any]) -> Diagnostic:
    repair = data["repair"]
    span = tuple(data["repair_span"])
    made = repairs.from_json(repair) if repair is not None else None
    return Diagnostic(**{**data, "repair": made, "repair_span": span})
