"""Watches a cell while it runs, and decides whether a trial that leaves it out has the same.

It has where the values that the cell makes are plain data, nothing else was changed, and its definitions, which run in
each trial, are made without what is left out.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from flatout.source.notebooks.kept_cells import KeptCell, Kind
from flatout.trial.child import seeds
from flatout.trial.child.kept import content, plain, reach, state
from flatout.trial.child.kept.plain import NotPlain
from flatout.trial.messages import CellSeen

SHARE_OF_DISK = 0.5
"""Of what is free."""
_NOTHING = object()

Names = Mapping[str, Any]


class Watch:
    """Each of its steps may fail: that is the reason not to keep the cell, and nothing more is looked at."""

    def __init__(self, cell: KeptCell, namespace: Names) -> None:
        self.cell = cell
        self.namespace = namespace
        self.why_not = ""
        self._names = dict(namespace)
        """Before it began."""
        self._made_again: dict[str, Any] = {}
        """By its imports and definitions."""
        self._held: dict[str, tuple[Any, str]] = {}
        """What its code can come to, with digests of before."""
        self._begins_with: dict[str, str] = {}
        self._state: Mapping[str, object] = {}
        self._before_group: Names = {}
        self._random = b""
        self._clocks = state.clocks()
        self._try(self._begin)

    def before(self, kind: Kind) -> None:
        """Before statements of this kind run."""
        self._try(self._before_once if kind == "once" else self._before_again)

    def after(self, kind: Kind) -> None:
        self._try(self._after_once if kind == "once" else lambda: self._after_again(kind))

    def end(self, directory: Path, room: int) -> CellSeen:
        """Writes what the cell has made, where that can be kept."""
        found: list[CellSeen] = []
        self._try(lambda: found.append(self._stored(directory, room)))
        return found[0] if found else CellSeen(self.cell.number, self.why_not)

    def _try(self, act: Callable[[], None]) -> None:
        if self.why_not:
            return
        try:
            act()
        except NotPlain as reason:
            self.why_not = str(reason)
        except Exception as error:  # nothing of this may reach the program
            self.why_not = f"what it does cannot be seen ({type(error).__name__}: {error})"

    # ── what it does ─────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> None:
        if self.cell.by_text:
            raise NotPlain("it may use names that its source does not show")
        if both := self.cell.defined_with & self.cell.bound:
            raise NotPlain(f"a definition in it needs `{min(both)}` while it is made")
        self._hold(self.namespace)
        self._begins_with = {name: digest for name, (_, digest) in self._held.items()}

    def _before_once(self) -> None:
        self._state = state.look()

    def _after_once(self) -> None:
        change, self._state = state.difference(self._state, state.look()), {}
        if change:
            raise NotPlain(change)

    def _before_again(self) -> None:
        self._before_group, self._random = dict(self.namespace), seeds.state()

    def _after_again(self, kind: Kind) -> None:
        before, self._before_group = self._before_group, {}
        self._made_again.update(
            {name: value for name, value in self.namespace.items() if before.get(name, _NOTHING) is not value}
        )
        if kind == "definition" and seeds.state() != self._random:  # what an import draws is drawn in a trial as well
            raise NotPlain("a definition in it draws random numbers")
        self._hold({name: value for name, value in self.namespace.items() if not self._is_made(name, value)})

    def _hold(self, namespace: Names) -> None:
        """Remember what the code can come to as it is now."""
        for name, value in reach.reached(self.cell.names, self.cell.attributes, namespace).items():
            if name in self._held:
                continue
            digest = reach.digest(value)
            self._held[name] = value, digest
            if digest == reach.UNKNOWN:
                raise NotPlain(f"it uses `{name}`, and whether it changes that cannot be seen")
            if name in self.cell.defined_with and reach.is_users(value) and not isinstance(value, type):
                raise NotPlain(f"a definition in it calls `{name}`")

    def _is_made(self, name: str, value: Any) -> bool:
        """Whether it was bound by statements that a trial leaves out."""
        before = self._made_again.get(name, self._names.get(name, _NOTHING))
        return before is not value and not name.startswith("__")

    # ── what is kept ─────────────────────────────────────────────────────────────────────────────────────────

    def _stored(self, directory: Path, room: int) -> CellSeen:
        for name, (value, digest) in self._held.items():
            if reach.digest(value) != digest:
                raise NotPlain(f"it changes `{name}`")
        made = [name for name, value in self.namespace.items() if self._is_made(name, value)]
        wanted = sorted(self.cell.read_elsewhere(made))
        left_out = sorted(set(made) - set(wanted))
        now = state.clocks()
        for name in wanted:
            if state.is_time(self.namespace[name], self._clocks, now):
                raise NotPlain(f"`{name}` is the time at which it ran")
        about = plain.check(self.namespace, wanted, left_out)
        if about > min(room, SHARE_OF_DISK * shutil.disk_usage(directory.parent).free):
            raise content.too_large(room) if about > room else NotPlain("the disk has no room for what it makes")
        values = {name: self.namespace[name] for name in wanted}
        return CellSeen(
            self.cell.number,
            size=content.store(directory, {"values": values, "random": seeds.state()}, room),
            history=self.cell.history,
            begins_with=self._begins_with,
            deleted=tuple(sorted((self._names.keys() | self._made_again.keys()) - self.namespace.keys())),
            left_out=tuple(left_out),
        )
