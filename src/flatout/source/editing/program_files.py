"""The files of a program: those that a case names, and the local modules that they import."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

from flatout.model import queries
from flatout.model.case import Case
from flatout.source import context, users_code
from flatout.source.editing.case_facts import main_file

MOST = 200


def own_files(case: Case) -> list[str]:
    """Absolute paths, the main program first; nothing of a library."""
    main = main_file(case)
    named = [*([main] if main else []), *(where.file for where in queries.locations(case) if where.file)]
    roots = list(dict.fromkeys(os.path.dirname(os.path.abspath(file)) for file in named[:1]))
    roots.append(case.program.directory)
    found: dict[str, str] = {}
    waiting = [os.path.abspath(file) for file in named]
    while waiting and len(found) < MOST:
        file = waiting.pop(0)
        real = os.path.realpath(file)  # a file with two names is edited once
        if real in found or not os.path.isfile(file) or not users_code.is_users_file(file):
            continue
        found[real] = file
        waiting += _imported(file, roots)
    return list(found.values())


def _imported(file: str, roots: list[str]) -> Iterator[str]:
    """Modules that a file imports from its own directory or from that of the program."""
    module = context.tree(file)
    for node in ast.walk(module) if module is not None else ():
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _module(alias.name, roots)
        elif isinstance(node, ast.ImportFrom):
            base = [str(Path(file).parents[node.level - 1])] if 0 < node.level <= len(Path(file).parents) else roots
            name = node.module or ""
            yield from _module(name, base)
            for alias in node.names:
                yield from _module(f"{name}.{alias.name}".lstrip("."), base)


def _module(name: str, roots: list[str]) -> Iterator[str]:
    if not name:
        return
    relative = name.replace(".", os.sep)
    for root in filter(None, roots):
        for candidate in (f"{relative}.py", os.path.join(relative, "__init__.py")):
            path = os.path.join(root, candidate)
            if os.path.isfile(path):
                yield os.path.normpath(path)
