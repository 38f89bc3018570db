"""Checks that every element of the source is in the shards, once, with the same bytes, and nothing else.

Both sides are read again, independently of how the elements were ordered and divided: the source from its first element
to its last, the shards as files whose checksums must match. Each gives one digest per element, and the two collections
must be equal. A pipeline may not yield the same elements twice, so only its shards are read; the sum of their digests
must be that of the elements written.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flatout.data.shards import example, formats, shard, workers
from flatout.data.shards.progress import Progress
from flatout.data.shards.schema import Schema, Shard
from flatout.data.shards.source import Corrupt, Source
from flatout.data.shards.tfrecord import Damaged
from flatout.model.errors import ProcessFailed, ShardsDiffer

Digests = NDArray[np.uint64]
PART = 2_000


@dataclass(frozen=True)
class _File:
    path: Path
    shard: Shard
    format: str
    compression: str


def verify(schema: Schema, directory: Path, source: Source | None, processes: int | None, quiet: bool = False) -> str:
    """Returns a sentence that says what was checked. Raises ShardsDiffer."""
    files = [_File(directory / one.file, one, schema.format, schema.compression) for one in schema.shards]
    size = sum(one.bytes for one in schema.shards)
    sides = 1 if source is None else 2
    progress = Progress("verifying", sides * schema.elements, sides * size, quiet)
    try:
        stored = _all_digests(_digests_of_file, files, processes, progress)
        if source is None:
            return _against_digest(schema, stored)
        bounds = [*range(0, len(source), PART), len(source)]
        parts = [source.select(np.arange(a, b)) for a, b in itertools.pairwise(bounds)]
        original = _all_digests(_digests_of_part, parts, processes, progress)
    finally:
        progress.end()
    _expect_same(original, stored, source)
    return f"each of the {len(stored):,} elements is there once, with equal bytes"


def _all_digests(
    task: Callable[[Any, workers.Report], Digests], jobs: Sequence[Any], processes: int | None, progress: Progress
) -> Digests:
    found: list[Digests] = []
    for _, result in workers.run(task, jobs, processes or workers.cores(), progress.report):
        if isinstance(result, workers.Died):
            raise ProcessFailed(f"The worker verifying it {result.reason}, twice. Try again with fewer --workers.")
        found.append(result)
    return np.concatenate(found) if found else np.zeros(0, np.uint64)


def _digests_of_file(file: _File, report: workers.Report) -> Digests:
    checksum = hashlib.sha256()
    try:
        with open(file.path, "rb") as stream:
            while block := stream.read(1 << 20):
                checksum.update(block)
        if checksum.hexdigest() != file.shard.sha256:
            raise Damaged(f"{file.path} does not match its checksum: it was changed after it was written.")
        digests = [shard.digest_of(record) for record in formats.read(file.path, file.format, file.compression)]
    except (OSError, Damaged) as error:
        raise ShardsDiffer(f"{error} Convert again with --force.") from None
    report(len(digests), file.shard.bytes)
    return np.array(digests, np.uint64)


def _digests_of_part(part: Source, report: workers.Report) -> Digests:
    digests, size = [], 0
    for number in range(len(part)):
        try:
            record = example.encode(part.read(number))
        except Corrupt:
            continue  # if it is in the shards nevertheless, the collections differ
        digests.append(shard.digest_of(record))
        size += len(record)
    report(len(digests), size)
    return np.array(digests, np.uint64)


def _against_digest(schema: Schema, stored: Digests) -> str:
    total = f"{int(np.add.reduce(stored)) % 2**64:016x}"
    if len(stored) != schema.elements or total != schema.digest:
        raise ShardsDiffer(
            f"The {len(stored):,} elements of the shards are not the {schema.elements:,} that were written. "
            "Convert again with --force."
        )
    return f"the shards contain the {len(stored):,} elements that were written, with equal bytes"


def _expect_same(original: Digests, stored: Digests, source: Source) -> None:
    if np.array_equal(np.sort(original), np.sort(stored)):
        return
    ours, our_counts = np.unique(original, return_counts=True)
    theirs, their_counts = np.unique(stored, return_counts=True)
    both, at_ours, at_theirs = np.intersect1d(ours, theirs, return_indices=True)
    shared = int(np.minimum(our_counts[at_ours], their_counts[at_theirs]).sum()) if len(both) else 0
    raise ShardsDiffer(
        f"The shards differ from the source: {len(original) - shared:,} of its {len(source):,} elements are missing or "
        f"changed, and {len(stored) - shared:,} elements of the shards are not in the source now. Has the source "
        "changed since? Convert again with --force."
    )
