"""Which files to look at: those named, and the Python files and notebooks of the folders named."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from flatout.check.settings import Settings, matches_path
from flatout.model.errors import InvalidOption

SKIPPED = frozenset(
    [
        ".git",
        ".hg",
        ".svn",
        ".venv",
        "venv",
        ".env",
        "env",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
        "__pycache__",
        "node_modules",
        "build",
        "dist",
        "site-packages",
        ".eggs",
        ".ipynb_checkpoints",
        ".flatout",
    ]
)
"""Folders that hold nothing of the user's own."""
ENDINGS = (".py", ".pyi", ".ipynb")


@dataclass(frozen=True)
class Problem:
    """Something that could not be checked, in one line."""

    path: str
    text: str


def collect(paths: Iterable[str], settings: Settings) -> tuple[list[str], list[Problem]]:
    files: dict[str, None] = {}
    problems: list[Problem] = []
    for given in paths:
        if os.path.isdir(given):
            for path in _walk(given, settings, problems):
                files.setdefault(path)
        elif os.path.exists(given):
            files.setdefault(given)
        else:
            raise InvalidOption(f"There is nothing at {given}. Name files or folders with Python source.")
    return list(files), problems


def _walk(top: str, settings: Settings, problems: list[Problem]) -> Iterator[str]:
    # Links to folders are not followed: a loop of them would never end.
    def failed(error: OSError) -> None:
        problems.append(Problem(str(error.filename), f"cannot be opened: {error.strerror}"))

    for folder, folders, names in os.walk(top, onerror=failed, followlinks=False):
        folders[:] = sorted(
            name for name in folders if name not in SKIPPED and not _excluded(os.path.join(folder, name), settings)
        )
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.endswith(ENDINGS) and not _excluded(path, settings):
                yield path.removeprefix("./")


def _excluded(path: str, settings: Settings) -> bool:
    return any(matches_path(path, glob, settings.root) for glob in settings.exclude)


def read(path: str) -> bytes | Problem:
    try:
        if not os.path.isfile(path):
            return Problem(path, "is not a file")
        with open(path, "rb", buffering=0) as stream:
            return stream.readall()
    except OSError as error:
        return Problem(path, f"cannot be read: {error.strerror}")
