"""The levers of one child: found, installed, asked what they changed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from types import ModuleType

from flatout.model.levers import parse
from flatout.observe.injection import Injection, LeverReport
from flatout.observe.observer import Observer


class Injections:
    """All levers of one child, in the order given."""

    def __init__(self, observer: Observer, levers: Sequence[str]) -> None:
        self.observer = observer
        self.levers = [(Injection(observer, *parse(text)), _module(parse(text)[0])) for text in levers]

    def install(self, package: str, module: ModuleType) -> None:
        for injection, lever in self.levers:
            make: Callable[[Injection, ModuleType], None] | None = getattr(lever, f"on_{package}", None)
            if make is None:
                continue
            try:
                make(injection, module)
            except Exception as error:  # a lever that cannot be injected is one row of the table, not the end
                self.observer.recorder.fact(
                    "lever-failed", lever=injection.lever, text=f"{type(error).__name__}: {error}"
                )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(injection.lever for injection, _ in self.levers)

    @property
    def ready(self) -> bool:
        return all(ask() for injection, _ in self.levers for ask in injection.ready)

    def report(self) -> dict[str, LeverReport]:
        return {i.text: LeverReport(i.changes, tuple(i.notes)) for i, _ in self.levers}


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"flatout.cures.{name.replace('-', '_')}")
