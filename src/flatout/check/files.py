"""Finds the files to check: those named, and the Python files and notebooks in the directories named."""

from __future__ import annotations

import os
import stat
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
"""Directories without the user's own code."""
LARGEST = 8 * 2**20
"""Bytes of a Python file: the tree of a larger one takes gigabytes, and it is data as a rule."""
LARGEST_NOTEBOOK = 256 * 2**20
"""Bytes of a notebook, most of which are outputs."""
ENDINGS = (".py", ".pyi", ".ipynb")


@dataclass(frozen=True)
class Problem:
    """A file or directory that could not be checked, and why in one line."""

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
            raise InvalidOption(f"{given} does not exist. Name files or directories with Python source.")
    return list(files), problems


def _walk(top: str, settings: Settings, problems: list[Problem]) -> Iterator[str]:
    # Links to directories are not followed: they may form a cycle.
    def failed(error: OSError) -> None:
        problems.append(Problem(str(error.filename), f"cannot be opened: {error.strerror}"))

    for directory, directories, names in os.walk(top, onerror=failed, followlinks=False):
        directories[:] = sorted(
            name
            for name in directories
            if name not in SKIPPED and not _excluded(os.path.join(directory, name), settings)
        )
        for name in sorted(names):
            path = os.path.join(directory, name)
            if name.endswith(ENDINGS) and not _excluded(path, settings):
                yield path.removeprefix("./")


def _excluded(path: str, settings: Settings) -> bool:
    return any(matches_path(path, glob, settings.root) for glob in settings.exclude)


def read(path: str) -> bytes | Problem:
    try:
        # Not blocking: the open of a pipe would wait for its writer.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        return Problem(path, f"cannot be read: {error.strerror}")
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            return Problem(path, "is not a file")
        if facts.st_size > (LARGEST_NOTEBOOK if path.endswith(".ipynb") else LARGEST):
            return Problem(path, f"is left out: it has {facts.st_size / 2**20:.0f} MiB, which no source has")
        content = os.read(handle, facts.st_size + 1)
        while len(content) < facts.st_size and (more := os.read(handle, facts.st_size - len(content))):
            content += more
        return content
    except OSError as error:
        return Problem(path, f"cannot be read: {error.strerror}")
    finally:
        os.close(handle)
