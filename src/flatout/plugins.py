"""The one loader of plugins: causes, cures, routes, environment checks.

A plugin is a module or a folder of a package (`causes/host_sync.py`, `cures/prefetch/`). It declares one typed object
under a name that the package chooses, and its docstring is its page: the first line is the title, the rest is Markdown.
Nothing registers it anywhere else. Names with a leading underscore are shared code of the package.

A package makes its catalogue in one line:

    CAUSES = Catalogue("flatout.causes", declares="CAUSE", kind=Cause)

Directories named in the variable FLATOUT_PLUGINS add plugins from outside: `DIR/causes/*.py`, `DIR/cures/*/`,
`DIR/routes/*.py`, `DIR/checks/*.py`. They are imported as modules of the package, so that `flatout.causes.my_cause`
works in a child process as well.

Order is declared by the plugin that needs it (`after`) and computed here, once.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Generic, TypeVar

from flatout.model.errors import PluginInvalid

VARIABLE = "FLATOUT_PLUGINS"

T = TypeVar("T")


@dataclass(frozen=True)
class Loaded(Generic[T]):
    """A plugin: its name, the title and the page in its docstring, and what it declares."""

    name: str
    title: str
    page: str
    module: ModuleType
    spec: T


class Catalogue(Generic[T]):
    """All plugins of one package, imported when first asked for."""

    def __init__(self, package: str, declares: str, kind: type[T]) -> None:
        self.package = package
        self.declares = declares
        self.kind = kind
        self._found: dict[str, Loaded[T]] | None = None

    def all(self) -> Mapping[str, Loaded[T]]:
        """Every plugin by its name, in alphabetical order."""
        if self._found is None:
            self._found = {plugin.name: plugin for plugin in self._read_all()}
        return self._found

    def find(self, name: str, error: Callable[[str], Exception]) -> Loaded[T]:
        """The plugin of this name; for any other name the error, with the nearest names in its message."""
        found = self.all()
        if name in found:
            return found[name]
        raise error(f"{name!r} is not known.{suggestion(name, found)}")

    def load(self, name: str) -> Loaded[T]:
        """One plugin, without importing the others: for child processes, which need only a few."""
        add_directories(importlib.import_module(self.package))
        return self._read(name.replace("-", "_"))

    def _read_all(self) -> Iterator[Loaded[T]]:
        package = importlib.import_module(self.package)
        add_directories(package)
        found = Counter(
            info.name
            for directory in package.__path__
            for info in pkgutil.iter_modules([directory])
            if not info.name.startswith("_")
        )
        for name, count in sorted(found.items()):
            if count > 1:
                raise PluginInvalid(
                    f"{name!r} of {VARIABLE} has the name of another plugin of {self.package}: rename its file."
                )
            yield self._read(name)

    def _read(self, module_name: str) -> Loaded[T]:
        try:
            module = importlib.import_module(f"{self.package}.{module_name}")
        except Exception as error:
            raise PluginInvalid(
                f"{self.package}.{module_name} cannot be imported: {type(error).__name__}: {error}"
            ) from error
        spec = getattr(module, self.declares, None)
        if not isinstance(spec, self.kind):
            expected = f"{self.declares} = {self.kind.__name__}(…)"
            raise PluginInvalid(f"{module.__file__} declares no plugin: `{expected}` was expected in it.")
        title, page = page_of(module)
        return Loaded(module_name.replace("_", "-"), title, page, module, spec)


def page_of(documented: object) -> tuple[str, str]:
    """The title and the page in the docstring of a module or a class."""
    title, _, page = inspect.cleandoc(documented.__doc__ or "").partition("\n")
    return title.strip().rstrip("."), page.strip()


def add_directories(package: ModuleType) -> None:
    """Let the package's modules come from the directories of FLATOUT_PLUGINS too. Does nothing the second time."""
    folder = package.__name__.rpartition(".")[2]
    for directory in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        path = str(Path(directory).absolute() / folder)
        if os.path.isdir(path) and path not in package.__path__:
            package.__path__.append(path)


def suggestion(name: str, known: Iterable[str]) -> str:
    """` Did you mean a or b?`, or nothing where no name is near."""
    close = difflib.get_close_matches(name, list(known), n=3, cutoff=0.4)
    return f" Did you mean {' or '.join(close)}?" if close else ""


def in_order(after: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """The names, each behind those that it is declared to come after; alphabetical where nothing is declared.

    Names that are not there are ignored: a plugin may come after one that is not installed.
    """
    waiting = {name: {other for other in others if other in after} for name, others in after.items()}
    ordered: list[str] = []
    while waiting:
        free = sorted(name for name, others in waiting.items() if not others)
        if not free:
            raise PluginInvalid(f"`after` runs in a circle among {', '.join(sorted(waiting))}.")
        ordered.append(free[0])
        del waiting[free[0]]
        for others in waiting.values():
            others.discard(free[0])
    return tuple(ordered)
