"""Finds the lever files of this package and gives them out as `Lever` objects."""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

from flatout.model.case import Case, Equivalence
from flatout.model.errors import UnknownLever
from flatout.model.levers import parse


@dataclass(frozen=True)
class Lever:
    name: str
    title: str
    page: str
    equivalence: Equivalence
    side: str
    conflicts: tuple[str, ...]
    unasked: bool
    fills: bool
    several: bool
    module: ModuleType

    def values(self, case: Case) -> Sequence[str]:
        ask = getattr(self.module, "values", None)
        return tuple(ask(case)) if ask is not None else ("",)

    def skip(self, case: Case) -> str | None:
        ask = getattr(self.module, "skip", None)
        return ask(case) if ask is not None else None

    def environment(self, value: str) -> dict[str, str]:
        ask = getattr(self.module, "environment", None)
        return dict(ask(value)) if ask is not None else {}

    @property
    def is_an_edit(self) -> bool:
        """Whether it cannot be injected: its trial runs the edited source."""
        hooks = ("on_tensorflow", "on_keras", "on_tf_keras", "environment")
        return not any(hasattr(self.module, name) for name in hooks)


@functools.cache
def catalogue() -> dict[str, Lever]:
    package = importlib.import_module("flatout.cures")
    names = [info.name for info in pkgutil.iter_modules(package.__path__) if not info.name.startswith("_")]
    read = (_read(name) for name in names)
    found = sorted((lever for lever in read if lever is not None), key=lambda lever: lever.name)
    return {lever.name: lever for lever in found}


def find(name: str) -> Lever:
    levers = catalogue()
    if name in levers:
        return levers[name]
    close = difflib.get_close_matches(name, levers, n=3, cutoff=0.4)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    raise UnknownLever(f"There is no lever named {name!r}.{hint} The levers are: {', '.join(levers)}.")


def environment_of(levers: Sequence[str]) -> dict[str, str]:
    """All variables that these levers want set before Python starts."""
    variables: dict[str, str] = {}
    for text in levers:
        name, value = parse(text)
        variables.update(find(name).environment(value))
    return variables


def _read(module_name: str) -> Lever | None:
    module = importlib.import_module(f"flatout.cures.{module_name}")
    if not hasattr(module, "EQUIVALENCE"):
        return None  # a rewrite of datasets alone
    title, _, page = inspect.cleandoc(module.__doc__ or "").partition("\n")
    return Lever(
        name=module_name.replace("_", "-"),
        title=title.strip().rstrip("."),
        page=page.strip(),
        equivalence=module.EQUIVALENCE,
        side=module.SIDE,
        conflicts=tuple(getattr(module, "CONFLICTS", ())),
        unasked=bool(getattr(module, "UNASKED", True)),
        fills=bool(getattr(module, "FILLS", False)),
        several=bool(getattr(module, "SEVERAL", False)),
        module=module,
    )
