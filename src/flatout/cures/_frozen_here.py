"""What `_frozen` says of the program that this process runs: for levers, before they let something be traced."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from flatout.cures import _frozen
from flatout.observe.imports import loaded
from flatout.source import users_code
from flatout.source.editing.project import Project

MOST_FILES = 200


def reason(judge: Callable[[Project], str | None]) -> str | None:
    """What speaks against tracing, in the files of the program that have been imported so far."""
    try:
        return judge(_project(tuple(sorted(_files()))))
    except RecursionError:
        return "the program's source is nested too deeply to be judged"


def keras() -> str | None:
    return reason(_frozen.keras_in)


def traced() -> str | None:
    return reason(_frozen.traced_in)


@functools.lru_cache(maxsize=2)
def _project(files: tuple[str, ...]) -> Project:
    texts: dict[str, str] = {}
    for file in files:
        try:
            texts[file] = Path(file).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
    return Project(texts)


def _files() -> set[str]:
    files = (getattr(module, "__file__", None) for module in loaded())
    named = {users_code.absolute(file) for file in files if isinstance(file, str) and file.endswith(".py")}
    return set(sorted(file for file in named if users_code.is_users_file(file))[:MOST_FILES])
