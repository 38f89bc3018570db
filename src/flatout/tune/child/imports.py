"""Do something right after a module was imported, without importing it earlier than the program does.

The program may set variables (OMP_NUM_THREADS) before it imports numpy: whoever imports numpy for it would come first.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


def after_import(name: str, act: Callable[[ModuleType], None]) -> None:
    """Call `act(module)` once `name` is imported: now, where it is already. What `act` raises is dropped."""
    module = sys.modules.get(name)
    if module is not None:
        with contextlib.suppress(Exception):
            act(module)
        return
    for finder in sys.meta_path:
        if isinstance(finder, _Finder):
            finder.waiting.setdefault(name, []).append(act)
            return
    sys.meta_path.insert(0, _Finder({name: [act]}))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, waiting: dict[str, list[Callable[[ModuleType], None]]]) -> None:
        self.waiting = waiting
        self.searching = threading.local()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self.waiting or getattr(self.searching, "on", False):
            return None
        self.searching.on = True
        try:
            spec = importlib.util.find_spec(fullname)
        except (ImportError, ValueError):
            return None
        finally:
            self.searching.on = False
        loader: Any = None if spec is None else spec.loader
        if loader is None or not hasattr(loader, "exec_module"):
            return None
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            loader.exec_module = run
            run(module)
            for act in self.waiting.pop(fullname, ()):
                with contextlib.suppress(Exception):
                    act(module)

        loader.exec_module = exec_module
        return spec
