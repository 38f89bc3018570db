"""Calls a function right after a module was imported, without importing it earlier than the program does.

The program may set variables (OMP_NUM_THREADS) before it imports numpy; an import of ours would come before them.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from types import ModuleType

from flatout.observe.imports import ImportWatch


def after_import(name: str, act: Callable[[ModuleType], None]) -> None:
    """Call `act(module)` once `name` is imported: now, where it is already. What `act` raises is dropped."""
    module = sys.modules.get(name)
    if module is not None:
        with contextlib.suppress(Exception):
            act(module)
        return
    watch = next((finder for finder in sys.meta_path if isinstance(finder, _AfterImport)), None)
    if watch is None:
        watch = _AfterImport()
        sys.meta_path.insert(0, watch)
    watch.waiting.setdefault(name, []).append(act)
    watch.armed.add(name)


class _AfterImport(ImportWatch):
    def __init__(self) -> None:
        super().__init__()
        self.waiting: dict[str, list[Callable[[ModuleType], None]]] = {}

    def execute(self, fullname: str, module: ModuleType, run: Callable[[ModuleType], None]) -> None:
        run(module)
        for act in self.waiting.pop(fullname, ()):
            with contextlib.suppress(Exception):
                act(module)
