"""Steps in front of the import of some modules, so that something can be done right after each was run."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any


def loaded() -> Iterator[ModuleType]:
    """The modules that have run. To ask one for anything that waits for its first use (`importlib.util.LazyLoader`)
    would run it."""
    waits = importlib.util._LazyModule  # type: ignore[attr-defined]
    for module in list(sys.modules.values()):
        if issubclass(type(module), ModuleType) and not issubclass(type(module), waits):
            yield module


class ImportWatch(importlib.abc.MetaPathFinder):
    """A finder for `sys.meta_path`. A name is let go when its module runs, not when it is looked for: TensorFlow looks
    for Keras with `find_spec` without importing it."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.armed = set(names)
        self.searching = threading.local()

    def execute(self, fullname: str, module: ModuleType, run: Callable[[ModuleType], None]) -> None:
        """Run the module by `run(module)`, with whatever belongs before and after it."""
        raise NotImplementedError

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self.armed or getattr(self.searching, "on", False):
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
            self.armed.discard(fullname)
            loader.exec_module = run
            self.execute(fullname, module, run)

        loader.exec_module = exec_module
        return spec
