"""What a lever is given inside the child, and what it reports back."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flatout.observe.observer import Observer


class Injection:
    """One lever at work in one program."""

    def __init__(self, observer: Observer, lever: str, value: str = "") -> None:
        self.observer = observer
        self.lever = lever
        self.value = value
        self.changes = 0
        self.notes: list[str] = []
        self.ready: list[Callable[[], bool]] = []
        """Asked before measuring begins: a cache, for one, must be full first."""

    @property
    def text(self) -> str:
        return f"{self.lever}={self.value}" if self.value else self.lever

    def changed(self, what: str = "") -> None:
        """The lever has changed something. One that never says so had nothing to change, and is not measured."""
        self.changes += 1
        if what and what not in self.notes and len(self.notes) < 5:
            self.note(what)

    def note(self, text: str) -> None:
        """Something the reader of the trial should know."""
        if text not in self.notes:
            self.notes.append(text)


def parse(text: str) -> tuple[str, str]:
    """`steps-per-execution=16` → the lever's name and its setting."""
    name, _, value = text.partition("=")
    return name, value


def shown(levers: Sequence[str]) -> str:
    """For people: `function=/home/ada/train.py:26` is `function=train.py:26`."""
    pairs = (parse(text) for text in levers)
    return " + ".join(f"{name}={value.rpartition('/')[2]}" if value else name for name, value in pairs)


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
    def ready(self) -> bool:
        return all(ask() for injection, _ in self.levers for ask in injection.ready)

    def report(self) -> dict[str, Any]:
        return {i.text: {"changes": i.changes, "notes": i.notes} for i, _ in self.levers}


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"flatout.levers.{name.replace('-', '_')}")
