"""Finds the cause files of this package and gives them out as `Cause` objects."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType

from flatout.model.case import Case, Finding
from flatout.model.errors import UnknownCause
from flatout.source.analysis.pattern import Pattern

GROUPS = ("input", "graph", "numerics", "hardware", "api")
_NOT_CAUSES = {"catalogue", "diagnose", "ranking", "reading"}

Detector = Callable[[Case], Iterable[Finding]]


@dataclass(frozen=True)
class Cause:
    name: str
    group: str
    title: str
    page: str
    levers: tuple[str, ...]
    in_run: Detector | None
    in_source: tuple[Pattern, ...] = ()


@functools.cache
def catalogue() -> dict[str, Cause]:
    """All causes by name, in the order of their groups."""
    package = importlib.import_module("flatout.causes")
    found = [
        _read(info.name)
        for info in pkgutil.iter_modules(package.__path__)
        if info.name not in _NOT_CAUSES and not info.name.startswith("_")
    ]
    found.sort(key=lambda cause: (GROUPS.index(cause.group), cause.name))
    return {cause.name: cause for cause in found}


def find(name: str) -> Cause:
    causes = catalogue()
    if name in causes:
        return causes[name]
    close = difflib.get_close_matches(name, causes, n=3, cutoff=0.4)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    raise UnknownCause(f"There is no cause named {name!r}.{hint} `flatout explain` lists all {len(causes)}.")


def _read(module_name: str) -> Cause:
    module = importlib.import_module(f"flatout.causes.{module_name}")
    title, _, page = inspect.cleandoc(module.__doc__ or "").partition("\n")
    return Cause(
        name=module_name.replace("_", "-"),
        group=module.GROUP,
        title=title.strip().rstrip("."),
        page=page.strip(),
        levers=tuple(module.LEVERS),
        in_run=getattr(module, "in_run", None),
        in_source=_patterns(module, module_name.replace("_", "-")),
    )


def _patterns(module: ModuleType, cause: str) -> tuple[Pattern, ...]:
    """The functions of a cause's file that are marked with `@pattern`, in the order in which they stand there."""
    marked = [getattr(item, "pattern", None) for item in vars(module).values() if callable(item)]
    return tuple(dataclasses.replace(found, cause=cause) for found in marked if isinstance(found, Pattern))
