"""Writing one shard so that a kill, a crash or a full disk at any moment leaves nothing half-written under its name.

    1  the records go to a temporary file in the working directory, which lies on the same file system
    2  the file is forced to the disk
    3  a note says how many elements it has and what its checksum is
    4  the file takes its final name, in one step

The name is the promise: whatever bears it is whole. A shard with its name and its note is done; anything else is
written again, and gives the same bytes.
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

from flatout.data.shards import containers, example
from flatout.data.shards.schema import Shard, Skipped
from flatout.data.shards.sources import Corrupt, Source
from flatout.model.errors import ElementUnreadable

Tell = Callable[[int, int], None]
"""Is told of elements and bytes done since the last time."""
LARGEST = (1 << 31) - 1
"""Bytes of a record that TensorFlow can parse."""
EVERY = 0.2
"""Seconds between two words about progress."""


@dataclass(frozen=True)
class Job:
    """All that writing one shard needs, here or on another machine."""

    file: str
    directory: str
    working: str
    elements: Source
    format: str
    compression: str = ""
    skip: bool = False
    """Whether an element that cannot be read is left out; otherwise it ends the conversion."""


@dataclass(frozen=True)
class Written:
    shard: Shard
    digest: int
    skipped: tuple[Skipped, ...] = ()


def write(job: Job, tell: Tell = lambda elements, size: None) -> Written:
    count, digest, skipped = 0, 0, list[Skipped]()
    with temporary(job) as stream:
        writer = containers.FORMATS[job.format].Writer(stream, job.compression)
        for record in _told(_records(job, skipped), tell):
            writer.write(record)
            count, digest = count + 1, (digest + digest_of(record)) % 2**64
        writer.close()
        written = sealed(stream, job.file, count, digest, tuple(skipped))
        _note(job).write_text(json.dumps(dataclasses.asdict(written)), encoding="utf-8")
        sync(Path(job.working))
        os.replace(stream.name, Path(job.directory, job.file))
        sync(Path(job.directory))
    return written


def done(job: Job) -> Written | None:
    """What is known of a shard that was finished before."""
    try:
        plain = json.loads(_note(job).read_text(encoding="utf-8"))
        shard = Shard(**plain["shard"])
        skipped = tuple(Skipped(**one) for one in plain["skipped"])
        if os.path.getsize(Path(job.directory, job.file)) != shard.bytes:
            return None
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return Written(shard, plain["digest"], skipped)


def _note(job: Job) -> Path:
    return Path(job.working, f"{job.file}.json")


def _records(job: Job, skipped: list[Skipped]) -> Iterator[bytes]:
    for number in range(len(job.elements)):
        try:
            record = example.encode(job.elements.read(number))
            if len(record) > LARGEST:
                raise Corrupt("it is larger than the 2 GB that an element can have")
            yield record
        except Corrupt as error:
            name = job.elements.name(number)
            if not job.skip:
                raise ElementUnreadable(
                    f"{name!r} is corrupt: {error}. Mend or remove it, or leave such elements out with "
                    "`--on-error skip`; what is done so far is kept."
                ) from None
            skipped.append(Skipped(name, str(error)))


def _told(records: Iterator[bytes], tell: Tell) -> Iterator[bytes]:
    count = size = 0
    last = time.monotonic()
    for record in records:
        yield record
        count, size = count + 1, size + len(record)
        if time.monotonic() - last > EVERY:
            tell(count, size)
            count, size, last = 0, 0, time.monotonic()
    tell(count, size)


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def temporary(job: Job) -> Iterator[IO[bytes]]:
    """A file that is gone afterwards, unless it has got another name; a full disk has its room back."""
    path = Path(job.working, f"{job.file}.{os.getpid()}.part")
    try:
        with open(path, "w+b", buffering=1 << 20) as stream:
            yield stream
    finally:
        path.unlink(missing_ok=True)


def sealed(stream: IO[bytes], file: str, count: int, digest: int, skipped: tuple[Skipped, ...] = ()) -> Written:
    """Force a written file to the disk, and say what is in it."""
    stream.flush()
    os.fsync(stream.fileno())
    checksum, size = hashlib.sha256(), 0
    with open(stream.name, "rb") as written:
        while block := written.read(1 << 20):
            checksum.update(block)
            size += len(block)
    return Written(Shard(file, count, size, checksum.hexdigest()), digest, skipped)


def sync(directory: Path) -> None:
    """A name is safe when its directory has reached the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # not every file system can
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def digest_of(record: bytes) -> int:
    """What an element adds to the digest of its set."""
    return int.from_bytes(hashlib.blake2b(record, digest_size=8).digest(), "little")
