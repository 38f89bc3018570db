"""Writes one shard so that a kill, a crash or a full disk at any moment leaves no incomplete file under its name.

    1  the records are written to a temporary file in the working directory, on the same file system
    2  the file is forced to the disk
    3  a note records how many elements it has and its checksum
    4  the file is renamed to its final name, which is atomic

So a file with a final name is complete. A shard with both its file and its note is done; anything else is written
again, with the same bytes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from flatout.data.shards import example, formats
from flatout.data.shards.schema import Shard, Skipped
from flatout.data.shards.source import Corrupt, Source
from flatout.model import json_text
from flatout.model.errors import ElementUnreadable

Report = Callable[[int, int], None]
"""Called with the elements and bytes done since the last call."""
MAX_RECORD_BYTES = (1 << 31) - 1
"""The largest record that TensorFlow can parse."""
TOO_LARGE = "it is larger than 2 GB, the limit of a record"
REPORT_SECONDS = 0.2
"""Time between two reports of progress."""


@dataclass(frozen=True)
class Job:
    """Everything that is needed to write one shard, here or on another machine."""

    file: str
    directory: str
    working: str
    elements: Source
    format: str
    compression: str = ""
    skip: bool = False
    """Whether an element that cannot be read is left out. Otherwise it ends the conversion."""


@dataclass(frozen=True)
class Written:
    shard: Shard
    digest: int
    skipped: tuple[Skipped, ...] = ()


def write(job: Job, report: Report = lambda elements, size: None) -> Written:
    count, digest, skipped = 0, 0, list[Skipped]()
    with temporary(job) as stream:
        writer = formats.FORMATS[job.format].Writer(stream, job.compression)
        for record in _reporting(_records(job, skipped), report):
            writer.write(record)
            count, digest = count + 1, (digest + digest_of(record)) % 2**64
        writer.close()
        written = seal(stream, job.file, count, digest, tuple(skipped))
        _note(job).write_text(json.dumps(dataclasses.asdict(written)), encoding="utf-8")
        sync(Path(job.working))
        os.replace(stream.name, Path(job.directory, job.file))
        sync(Path(job.directory))
    return written


def finished(job: Job) -> Written | None:
    """What the note of a finished shard says; None if the shard is not finished."""
    try:
        values = json_text.read(_note(job))
        shard = Shard(**values["shard"])
        skipped = tuple(Skipped(**one) for one in values["skipped"])
        if os.path.getsize(Path(job.directory, job.file)) != shard.bytes:
            return None
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return Written(shard, values["digest"], skipped)


def _note(job: Job) -> Path:
    return Path(job.working, f"{job.file}.json")


def _records(job: Job, skipped: list[Skipped]) -> Iterator[bytes]:
    for number in range(len(job.elements)):
        try:
            record = example.encode(job.elements.read(number))
            if len(record) > MAX_RECORD_BYTES:
                raise Corrupt(TOO_LARGE)
            yield record
        except Corrupt as error:
            name = job.elements.name(number)
            if not job.skip:
                raise ElementUnreadable(
                    f"{name!r} is corrupt: {error}. Repair or remove it, or leave such elements out with "
                    "`--on-error skip`. The shards finished so far are kept."
                ) from None
            skipped.append(Skipped(name, str(error)))


def _reporting(records: Iterator[bytes], report: Report) -> Iterator[bytes]:
    count = size = 0
    last = time.monotonic()
    for record in records:
        yield record
        count, size = count + 1, size + len(record)
        if time.monotonic() - last > REPORT_SECONDS:
            report(count, size)
            count, size, last = 0, 0, time.monotonic()
    report(count, size)


@contextlib.contextmanager
def temporary(job: Job) -> Iterator[IO[bytes]]:
    """A file that is removed afterwards, unless it was renamed."""
    path = Path(job.working, f"{job.file}.{os.getpid()}.part")
    try:
        with open(path, "w+b", buffering=1 << 20) as stream:
            yield stream
    finally:
        path.unlink(missing_ok=True)


def seal(stream: IO[bytes], file: str, count: int, digest: int, skipped: tuple[Skipped, ...] = ()) -> Written:
    """Force a written file to the disk. Returns its size, checksum and contents."""
    stream.flush()
    os.fsync(stream.fileno())
    checksum, size = hashlib.sha256(), 0
    with open(stream.name, "rb") as written:
        while block := written.read(1 << 20):
            checksum.update(block)
            size += len(block)
    return Written(Shard(file, count, size, checksum.hexdigest()), digest, skipped)


def sync(directory: Path) -> None:
    """Force a directory to the disk: only then is a new name in it durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # not every file system supports it
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def digest_of(record: bytes) -> int:
    """The digest of one element. The digest of a set is their sum."""
    return int.from_bytes(hashlib.blake2b(record, digest_size=8).digest(), "little")
