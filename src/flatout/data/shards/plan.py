"""Which element goes into which shard: decided before anything is written, from the source and the request alone.

The plan is the same each time. So shards can be written in any order, by any process, on any machine, and again after a
kill, and have the same bytes.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from flatout.data.shards.source import Numbers, Source
from flatout.data.shards.tfrecord import FRAME
from flatout.model.errors import InvalidOption

SHARD_BYTES = 128_000_000
"""Default size limit of a shard: large enough for fast reads, small enough for many files to share among readers."""
MIN_SHARDS, MIN_SHARD_BYTES = 16, 10_000_000
"""Make at least this many shards, as long as none gets smaller than this, so that readers can work in parallel."""


@dataclass(frozen=True)
class Plan:
    name: str
    source: Source
    order: Numbers
    """The elements in the order in which they are written."""
    ends: Numbers
    """Where each shard ends in that order."""
    suffix: str

    def __len__(self) -> int:
        return len(self.ends)

    def file(self, shard: int) -> str:
        return shard_name(self.name, shard, len(self), self.suffix)

    def numbers(self, shard: int) -> Numbers:
        start = int(self.ends[shard - 1]) if shard else 0
        return self.order[start : int(self.ends[shard])]

    def part(self, shard: int) -> Source:
        return self.source.select(self.numbers(shard))

    def fingerprint(self) -> str:
        digest = hashlib.sha256(repr((self.name, self.source.kind, self.suffix)).encode())
        digest.update(self.source.fingerprint().encode(errors="surrogateescape"))
        digest.update(self.order.astype("<i8").tobytes() + self.ends.astype("<i8").tobytes())
        return digest.hexdigest()


def make(source: Source, name: str, suffix: str, cap: int | None = None, shuffle: int | None = None) -> Plan:
    """`shuffle` is a seed."""
    order = shuffled(len(source), shuffle) if shuffle is not None else np.arange(len(source))
    sizes = source.sizes()[order] + FRAME
    return Plan(name, source, order, cuts(sizes, cap), suffix)


def shuffled(count: int, seed: int) -> Numbers:
    """The numbers below `count`, sorted by a hash (splitmix64) of number and seed: the order does not depend on the
    version of a library."""
    mixed = np.arange(1, count + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        mixed += _mix(np.array([seed % 2**64], np.uint64))
        mixed = _mix(mixed * np.uint64(0x9E3779B97F4A7C15))
    return np.argsort(mixed, kind="stable")


def _mix(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):  # the overflow is intended
        value = (value ^ value >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ value >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = value ^ value >> np.uint64(31)
    return mixed


def cuts(sizes: Numbers, cap: int | None = None) -> Numbers:
    """Where each shard ends: none larger than the cap, except for a single larger element, and all of similar size."""
    total = int(sizes.sum())
    limit = cap or SHARD_BYTES
    count = len(_filled(sizes, limit))
    if cap is None:
        count = max(count, min(MIN_SHARDS, total // MIN_SHARD_BYTES))
    least, most = -(-total // count), limit
    while least < most:  # find the lowest limit that needs no more shards
        middle = (least + most) // 2
        if len(_filled(sizes, middle)) <= count:
            most = middle
        else:
            least = middle + 1
    return _filled(sizes, most)


def _filled(sizes: Numbers, limit: int) -> Numbers:
    """The ends of shards that are filled one after the other up to the limit."""
    until = np.cumsum(sizes)
    ends: list[int] = []
    start = before = 0
    while start < len(sizes):
        end = max(int(np.searchsorted(until, before + limit, "right")), start + 1)
        ends.append(end)
        start, before = end, int(until[end - 1])
    return np.array(ends, np.int64)


def shard_name(name: str, shard: int, count: int, suffix: str) -> str:
    return f"{name}-{shard:05d}-of-{count:05d}.{suffix}"


def set_name(requested: str | None, source: str) -> str:
    """The name of a set: the requested one, or else that of its source."""
    if requested is not None:
        if not re.fullmatch(r"[\w][\w.-]*", requested):
            raise InvalidOption(f"--name {requested!r} is not a name for files: use letters, digits, `_`, `-` and `.`.")
        return requested
    stem = source.rsplit(":", 1)[-1] if ":" in source else Path(source).resolve().name.split(".")[0]
    return re.sub(r"\W+", "_", stem).strip("_") or "data"
