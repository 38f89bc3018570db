"""The directory that a set of shards is written to, with a working directory in it.

DEST/.NAME.parts/plan.json    the plan that was started: a later run continues only with the same plan
DEST/.NAME.parts/…            temporary files, and a note for each finished shard
DEST/NAME-00000-of-00012.…    finished shards
DEST/NAME.schema.json         written last: where it exists, the set is complete
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from flatout.data.shards import schema
from flatout.data.shards.reader import module_name
from flatout.data.shards.shard import sync
from flatout.model import json_text
from flatout.model.errors import OutputNotWritable
from flatout.store import write_atomically


class Destination:
    def __init__(self, directory: Path, name: str) -> None:
        self.directory, self.name = directory, name
        self.working = directory / f".{name}.parts"
        self.schema = schema.path_in(directory, name)
        self._lock: IO[str] | None = None

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other conversions from writing this set. The lock ends with the process, however that ends."""
        self.working.mkdir(parents=True, exist_ok=True)
        with open(self.working / "lock", "w", encoding="ascii") as lock:
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise OutputNotWritable(
                    f"Another conversion is writing {self.name!r} to {self.directory}. Wait for it, or give --name."
                ) from None
            self.remove_temporary_files()
            yield

    def remove_temporary_files(self) -> None:
        """Remove what killed workers have left."""
        for path in self.working.glob("*.part"):
            path.unlink(missing_ok=True)

    def begin(self, fingerprint: str, force: bool) -> bool:
        """Start the set, or continue it. Returns True if it is complete already."""
        self._expect_own_reader()
        if force:
            self.clear()
        note = self.working / "plan.json"
        if self.schema.exists():
            known = schema.load(self.schema)
            if known.fingerprint != fingerprint:
                raise OutputNotWritable(
                    f"{self.directory} has another {self.name!r}: the source or the options have changed since. Give "
                    "--force to overwrite it, or --name to write under another name."
                )
            if self._has_all_shards(known):
                return True
            write_atomically(note, json.dumps({"fingerprint": fingerprint}))
            self.schema.unlink()  # a shard was removed: it is written again
        started = _fingerprint_in(note)
        if started == fingerprint:
            return False
        if started is not None or any(self.shards()):
            raise OutputNotWritable(
                f"{self.directory} has shards of an incomplete {self.name!r} with another source or other options. "
                "Start over with --force, or give --name."
            )
        write_atomically(note, json.dumps({"fingerprint": fingerprint}))
        return False

    def _expect_own_reader(self) -> None:
        """`a-b` and `a_b` are two sets, and one module."""
        own = module_name(self.name)
        for path in self.directory.glob(f"*{schema.SUFFIX}"):
            other = path.name.removesuffix(schema.SUFFIX)
            if other != self.name and module_name(other) == own:
                raise OutputNotWritable(
                    f"{self.directory} has a set {other!r}, whose reader is called {own}_reader.py as well. Give "
                    "another --name, or another directory."
                )

    def _has_all_shards(self, known: schema.Schema) -> bool:
        sizes = {path.name: path.stat().st_size for path in self.shards()}
        return all(sizes.get(one.file) == one.bytes for one in known.shards)

    def shards(self) -> Iterator[Path]:
        pattern = re.compile(re.escape(self.name) + r"-\d{5,}-of-\d{5,}\.(tfrecord|tfrecord\.gz|arrayrecord)")
        return (path for path in self.directory.iterdir() if pattern.fullmatch(path.name))

    def clear(self) -> None:
        self.schema.unlink(missing_ok=True)  # first: without it, the set does not count as complete
        for path in [*self.shards(), *self.working.glob("*.json")]:
            path.unlink(missing_ok=True)

    def finish(self, complete: schema.Schema, reader: tuple[str, str]) -> None:
        """Write the reader and the checksums, and the schema once everything else is on the disk."""
        write_atomically(self.directory / reader[0], reader[1])
        sums = "".join(f"{one.sha256}  {one.file}\n" for one in complete.shards)
        write_atomically(self.directory / f"{self.name}.sha256", sums)
        sync(self.directory)
        write_atomically(self.schema, complete.to_json())
        sync(self.directory)
        self.remove_working_directory()

    def remove_working_directory(self) -> None:
        """Failures are ignored: a working directory that stays does no harm."""
        shutil.rmtree(self.working, ignore_errors=True)


def _fingerprint_in(note: Path) -> str | None:
    try:
        return str(json_text.read(note)["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
