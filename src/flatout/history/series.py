"""The runs of a program, grouped by the state of its source: a commit and the uncommitted changes on top of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from flatout import store
from flatout.compare.differences import machine_description
from flatout.model.errors import FlatoutError
from flatout.store.database import Entry, open_in, path_in
from flatout.store.run_summary import Run
from flatout.store.saving import catch_up

MOST_REPEATS = 200


@dataclass(frozen=True)
class State:
    """All runs of one state, the oldest first."""

    entries: tuple[Entry, ...]

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(entry.run for entry in self.entries)

    @property
    def run(self) -> Run:
        return self.entries[-1].run

    @property
    def recorded(self) -> float:
        return self.entries[-1].recorded


@dataclass(frozen=True)
class Series:
    """One program with its arguments on one machine, with its states in order."""

    program: str
    arguments: tuple[str, ...]
    levers: tuple[str, ...]
    machine: str
    states: tuple[State, ...]

    @property
    def title(self) -> str:
        injected = f" (with {', '.join(self.levers)})" if self.levers else ""
        return " ".join((self.program, *self.arguments)) + injected

    @property
    def count(self) -> int:
        return sum(len(state.entries) for state in self.states)

    @property
    def newest(self) -> State:
        """The state of the most recent run. It need not be the last one: an earlier state may be run again."""
        return max(self.states, key=lambda state: state.recorded)

    @property
    def recorded(self) -> float:
        return self.newest.recorded


def series_of(entries: Iterable[Entry]) -> list[Series]:
    """Runs grouped into comparable series, the most recent last. Runs that did not finish are left out."""
    found: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries:
        run = entry.run
        if run.kind == "run" and run.median_ms > 0 and not run.failed:
            found.setdefault(_key(run), []).append(entry)
    made = [
        Series(first.program, first.arguments, first.levers, machine_description(first.facts), _states(rows))
        for rows in found.values()
        for first in (rows[0].run,)
    ]
    return sorted(made, key=lambda one: one.recorded)


def all_series(home: Path | None = None) -> list[Series]:
    """All series of a directory, including kept cases that are not in the database yet."""
    home = home or Path.cwd() / store.HOME
    with open_in(home) as history:
        catch_up(history, home)
        return series_of(history.entries())


def repeats_of(runs: Sequence[Run], home: Path | None = None) -> list[list[Run]]:
    """Other recorded runs of these programs, in groups of the same state: they show the noise between runs."""
    if not path_in(home or Path.cwd() / store.HOME).is_file():
        return []
    wanted, own = {_key(run) for run in runs}, {(run.name, run.started) for run in runs}
    try:
        with open_in(home) as history:
            entries = [entry for name in {run.program for run in runs} for entry in history.entries(name, MOST_REPEATS)]
    except FlatoutError:
        return []  # a comparison works without the history
    groups = []
    for series in series_of(entry for entry in entries if _key(entry.run) in wanted):
        for state in series.states:
            groups.append([run for run in state.runs if (run.name, run.started) not in own])
    return [group for group in groups if len(group) > 1]


def _states(rows: Sequence[Entry]) -> tuple[State, ...]:
    """Each run whose source is unknown is a state of its own: it cannot be assumed to be a repeat."""
    found: dict[object, list[Entry]] = {}
    for entry in rows:
        known = any(entry.run.state) and entry.run.changes != "unknown"
        # The program's file may not be under version control, so its checksum is part of the state.
        found.setdefault((*entry.run.state, entry.run.sha256) if known else entry.id, []).append(entry)
    return tuple(sorted((State(tuple(group)) for group in found.values()), key=lambda state: state.entries[0].recorded))


def _key(run: Run) -> tuple[str, ...]:
    return (run.program, "\0".join(run.arguments), "\0".join(run.levers), machine_description(run.facts), run.found_by)
