"""The SQLite file of the history.

Several runs may end at the same moment, and any of them may be killed while writing. The write-ahead log lets readers
and one writer work concurrently; other writers wait, and an unfinished transaction is rolled back. The file holds the
version of its schema: a newer flatout migrates an older file, an older flatout does not touch a newer one. SQLite
writes files beside it even to read it; where it may not, a copy is read.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flatout import store
from flatout.model import json_text
from flatout.model.errors import CaseNotFound, CaseUnreadable, FlatoutError
from flatout.store.run_summary import Run, run_from

FILE = "history.db"
VARIABLE = "FLATOUT_HISTORY"
"""An environment variable that names another file: for checkouts that share one history."""
WRITE_TIMEOUT = 20.0
"""Seconds to wait for other writers."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE runs (
          id INTEGER PRIMARY KEY,
          key TEXT NOT NULL UNIQUE,     -- identifies the run, wherever its case is moved to
          place TEXT NOT NULL,          -- the case's directory
          recorded REAL NOT NULL,       -- seconds since 1970
          kind TEXT NOT NULL,
          program TEXT NOT NULL,
          commit_id TEXT NOT NULL,
          branch TEXT NOT NULL,
          run TEXT NOT NULL             -- store.run_summary.Run as JSON
        )
        """,
        "CREATE INDEX runs_of_program ON runs (program, recorded)",
    ),
)
"""The statements that migrate the schema from each version to the next."""


@dataclass(frozen=True)
class Entry:
    """A row of the history."""

    id: int
    directory: str
    """Of the case. The column of the database is named `place`."""
    recorded: float
    run: Run


def path_in(home: Path) -> Path:
    named = os.environ.get(VARIABLE)
    return Path(named) if named else home / FILE


class History:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        try:
            if path.is_file() and not _may_be_written(path):
                path = self._copied()
            elif not os.environ.get(VARIABLE):  # what checkouts share, others may have to read
                with contextlib.suppress(OSError):
                    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
            self._connection = sqlite3.connect(path, timeout=WRITE_TIMEOUT, isolation_level=None)
            self._prepare()
        except sqlite3.DatabaseError as error:
            self._remove_copy()
            raise self._unusable(error) from None

    def __enter__(self) -> History:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._remove_copy()

    def add(self, run: Run, key: str, directory: str, recorded: float) -> None:
        """Insert a run, or update the row that it has already."""
        if self._copy is not None:  # it would be lost with the copy
            raise self._unusable(sqlite3.OperationalError("it may be read only"))
        text = json.dumps(run.to_json(), ensure_ascii=True, allow_nan=False)
        values = (key, directory, recorded, run.kind, run.program, run.commit, run.branch, text)
        with self._clear_errors(), self._writing() as connection:
            connection.execute(
                "INSERT INTO runs (key, place, recorded, kind, program, commit_id, branch, run) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (key) DO UPDATE SET place = excluded.place, run = excluded.run",
                tuple(map(_storable, values)),
            )

    def entries(self, program: str | None = None, limit: int = 5000) -> list[Entry]:
        """All runs, or those of one program, the oldest first; at most the newest `limit`."""
        query = "SELECT id, place, recorded, run FROM runs"
        values: list[Any] = [limit]
        if program is not None:
            query, values = query + " WHERE program = ?", [_storable(program), limit]
        try:
            rows = self._connection.execute(query + " ORDER BY recorded DESC, id DESC LIMIT ?", values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from None
        return [found for row in reversed(rows) if (found := _entry(row)) is not None]

    def keys(self) -> set[str]:
        try:
            return {row[0] for row in self._connection.execute("SELECT key FROM runs")}
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from None

    def _copied(self) -> Path:
        """A copy, with the log of what was not yet moved into the file."""
        self._copy = tempfile.TemporaryDirectory(prefix="flatout-history-")
        copy = Path(self._copy.name) / FILE
        try:
            shutil.copyfile(self.path, copy)
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(f"{self.path}-wal", f"{copy}-wal")
        except OSError as error:
            raise sqlite3.OperationalError(error.strerror) from None
        return copy

    def _remove_copy(self) -> None:
        if self._copy is not None:
            self._copy.cleanup()

    @contextlib.contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from None

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: it is committed at the end of the block, or rolled back."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def _prepare(self) -> None:
        # Fails on a file system without shared memory (some network disks): the default journal is slower, but as safe.
        with contextlib.suppress(sqlite3.OperationalError):
            self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        if self._version() == len(MIGRATIONS):
            return
        with self._writing() as connection:
            version = self._version()  # another process may have migrated it meanwhile
            if version > len(MIGRATIONS):
                raise CaseUnreadable(
                    f"{self.path} was written by a newer flatout (schema {version}; this one knows {len(MIGRATIONS)}). "
                    "Update with `pip install -U flatout`."
                )
            for steps in MIGRATIONS[version:]:
                for statement in steps:
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _version(self) -> int:
        return int(self._connection.execute("PRAGMA user_version").fetchone()[0])

    def _unusable(self, error: sqlite3.Error) -> FlatoutError:
        todo = "Move it away; `flatout history` makes a new one from the kept cases."
        if isinstance(error, sqlite3.OperationalError):  # the file is in order, but not to be had now
            todo = (
                "To add runs to it, it and its directory have to be writable, and not locked by another program; "
                f"{VARIABLE} names another file."
            )
        return CaseUnreadable(f"The history {self.path} cannot be used: {error}. {todo}")


def open_in(home: Path | None = None) -> History:
    """The history of a directory of cases. The file is made if it does not exist."""
    home = home or Path.cwd() / store.HOME
    path = path_in(home)
    if not path.parent.is_dir():
        raise CaseNotFound(
            f"There is no history yet: {path.parent} does not exist. Run `flatout run PROGRAM` here first."
        )
    return History(path)


def _may_be_written(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _storable(value: Any) -> Any:
    """File names may hold bytes that are not UTF-8, which SQLite does not accept as text."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8") if isinstance(value, str) else value


def _entry(row: tuple[Any, ...]) -> Entry | None:
    number, directory, recorded, text = row
    try:
        return Entry(number, directory, recorded, run_from(json_text.parse(text)))
    except (TypeError, ValueError):
        return None  # not written by flatout
