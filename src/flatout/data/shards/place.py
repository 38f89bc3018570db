"""The folder that shards are written to, and the working directory in it while they are.

DEST/.NAME.parts/plan.json    what was begun: a later run goes on only with the same plan
DEST/.NAME.parts/…            temporary files, and a note for each finished shard
DEST/NAME-00000-of-00012.…    finished shards
DEST/NAME.schema.json         written last: with it, the set is complete
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
from flatout.data.shards.shard import sync
from flatout.model.errors import OutputNotWritable
from flatout.store import write_atomically


class Place:
    def __init__(self, directory: Path, name: str) -> None:
        self.directory, self.name = directory, name
        self.working = directory / f".{name}.parts"
        self.schema = schema.path_in(directory, name)
        self._lock: IO[str] | None = None

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else writes this set meanwhile. The lock is the process's own and ends with it, however it ends."""
        self.working.mkdir(parents=True, exist_ok=True)
        with open(self.working / "lock", "w", encoding="ascii") as lock:
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise OutputNotWritable(
                    f"Another conversion is writing {self.name!r} to {self.directory}. Wait for it, or give --name."
                ) from None
            self.tidy()
            yield

    def tidy(self) -> None:
        """Remove what a killed worker has left; the room on the disk is needed."""
        for path in self.working.glob("*.part"):
            path.unlink(missing_ok=True)

    def begin(self, fingerprint: str, force: bool) -> bool:
        """Whether the set is complete already. Otherwise it is begun, or gone on with."""
        if force:
            self.clear()
        note = self.working / "plan.json"
        if self.schema.exists():
            known = schema.load(self.schema)
            if known.fingerprint != fingerprint:
                raise OutputNotWritable(
                    f"{self.directory} holds another {self.name!r}: its source or its options have changed since. Will "
                    "not overwrite it without --force; --name gives the new one a name of its own."
                )
            if self._holds(known):
                return True
            write_atomically(note, json.dumps({"fingerprint": fingerprint}))
            self.schema.unlink()  # somebody has removed a shard: it is written again
        begun = _begun(note)
        if begun == fingerprint:
            return False
        if begun is not None or any(self.shards()):
            raise OutputNotWritable(
                f"{self.directory} holds shards of another {self.name!r} that is not complete: the source or the "
                "options have changed since it was begun. Start anew with --force, or give --name."
            )
        write_atomically(note, json.dumps({"fingerprint": fingerprint}))
        return False

    def _holds(self, known: schema.Schema) -> bool:
        sizes = {path.name: path.stat().st_size for path in self.shards()}
        return all(sizes.get(one.file) == one.bytes for one in known.shards)

    def shards(self) -> Iterator[Path]:
        pattern = re.compile(re.escape(self.name) + r"-\d{5,}-of-\d{5,}\.(tfrecord|tfrecord\.gz|arrayrecord)")
        return (path for path in self.directory.iterdir() if pattern.fullmatch(path.name))

    def clear(self) -> None:
        self.schema.unlink(missing_ok=True)  # first: without it, nothing here counts as complete
        for path in [*self.shards(), *self.working.glob("*.json")]:
            path.unlink(missing_ok=True)

    def finish(self, complete: schema.Schema, reader: tuple[str, str]) -> None:
        """The reader and the checksums, and the schema after all else is safe."""
        write_atomically(self.directory / reader[0], reader[1])
        sums = "".join(f"{one.sha256}  {one.file}\n" for one in complete.shards)
        write_atomically(self.directory / f"{self.name}.sha256", sums)
        sync(self.directory)
        write_atomically(self.schema, complete.to_json())
        sync(self.directory)
        self.leave()

    def leave(self) -> None:
        """Remove the working directory. One that stays behind harms nobody."""
        shutil.rmtree(self.working, ignore_errors=True)


def _begun(note: Path) -> str | None:
    try:
        return str(json.loads(note.read_text(encoding="utf-8"))["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
