"""Which files of a project belong to a program for TensorFlow 1, by those around them and by those that they import."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping

from flatout.check.checker import Outcome

MOST_OF_A_FEW = 3
"""Files for TensorFlow 1 from which a whole project may be for it."""
_DEPTH = 4
"""Files from one that trains to one that builds a layer."""


def spread_version_one(
    outcomes: Mapping[str, Outcome], asked: Collection[str], pinned: Callable[[str], tuple[int, int] | None]
) -> None:
    """Where most files are written for TensorFlow 1, the others are parts of the same program; and so is a file that
    imports one which fails with TensorFlow 2.

    A project that pins TensorFlow 2 is none of these, and no file that shows TensorFlow 2 by itself.
    """
    relevant = {path: outcome for path, outcome in outcomes.items() if outcome.relevant}
    old = sum(outcome.version_one for outcome in relevant.values())
    most = old >= MOST_OF_A_FEW and old * 2 > len(relevant)
    if not most and not any(outcome.fails_with_two for outcome in relevant.values()):
        return
    by_path = {os.path.normpath(path): outcome for path, outcome in relevant.items()}
    for path, outcome in relevant.items():
        if outcome.version_one or outcome.version_two or not (most or outcome.diagnostics):
            continue
        if (pinned(path) or (0, 0)) >= (2, 0):
            continue
        if most or _imports_old(os.path.normpath(path), by_path, set(), 0):
            outcome.version_one = True
            outcome.diagnostics = [item for item in outcome.diagnostics if item.full_name in asked]


def _imports_old(path: str, outcomes: Mapping[str, Outcome], seen: set[str], depth: int) -> bool:
    seen.add(path)
    for other in _imported(path, outcomes):
        if other in seen or outcomes[other].version_two:
            continue
        if outcomes[other].fails_with_two or (depth < _DEPTH and _imports_old(other, outcomes, seen, depth + 1)):
            return True
    return False


def _imported(path: str, outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    """Files of the project that a file imports, from its own folder or one above it."""
    for name in outcomes[path].imports:
        bare = name.lstrip(".")
        folder = os.path.dirname(path)
        for _ in range(len(name) - len(bare) - 1):
            folder = os.path.dirname(folder)
        tail = bare.replace(".", os.sep)
        while True:
            for ending in (".py", f"{os.sep}__init__.py"):
                candidate = os.path.normpath(os.path.join(folder, tail + ending))
                if candidate in outcomes:
                    yield candidate
            if not folder or bare != name or folder == os.path.dirname(folder):
                break
            folder = os.path.dirname(folder)
