"""Seeded mutations of files: bytes, and the structure of JSON. The same seed gives the same inputs on every machine."""

from __future__ import annotations

import copy
import json
import os
import random
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

COUNT = int(os.environ.get("FLATOUT_FUZZ", "25"))
"""Inputs for each reader. `FLATOUT_FUZZ=5000` for a long look."""
SECONDS = 60
"""After which a reader hangs."""

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 1 << 70, -(1 << 63), 0.5, 1e308, -1e308, float("nan"), float("inf"), "", "x", "0",
    "nan",
    "../../etc/passwd", "\x1b[31m", "<script>", "\ud800", "x" * 3000, [], {}, [[]], [None], [1, 2], {"x": None},
    {"kind": 1},
)  # fmt: skip
WORDS = (
    b"",
    b"\0",
    b"\xff\xff\xff\xff",
    b"\n",
    b"{",
    b"[" * 5000,
    b'"',
    b"1" * 5000,
    b"\xff" * 10,
    b"\x1f\x8b",
    b"NaN",
    b"-1",
)


def mutations(seeds: Sequence[bytes], name: str, count: int = COUNT) -> Iterator[bytes]:
    """Damaged forms of some files."""
    generator = random.Random(name)
    for _ in range(count):
        data = generator.choice(seeds)
        parsed = _parsed(data) if generator.random() < 0.6 else None
        yield _changed_json(parsed, generator) if parsed is not None else _changed_bytes(data, seeds, generator)


def _changed_bytes(data: bytes, seeds: Sequence[bytes], generator: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(generator.choice((1, 1, 2, 5, 40))):
        at = generator.randrange(len(made) + 1)
        length = generator.choice((1, 1, 4, 64, len(made) // 3))
        kind = generator.randrange(6)
        if kind == 0 and made:
            made[min(at, len(made) - 1)] = generator.randrange(256)
        elif kind == 1:
            del made[at : at + length]
        elif kind == 2:
            made[at:at] = generator.choice(WORDS)
        elif kind == 3:
            made[at:at] = made[at : at + min(length, 4096)]
        elif kind == 4:
            other = generator.choice(seeds)
            begin = generator.randrange(len(other) + 1)
            made[at : at + length] = other[begin : begin + length]
        else:
            del made[at:]
    return bytes(made)


def _parsed(data: bytes) -> list[Any] | None:
    """The objects of a JSON file, or of one with an object a line."""
    try:
        return [json.loads(data)]
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in data.splitlines() if line]
    except ValueError:
        return None


def _changed_json(objects: list[Any], generator: random.Random) -> bytes:
    objects = copy.deepcopy(objects)
    for _ in range(generator.choice((1, 1, 1, 2, 6))):
        places = list(_places(objects))
        if not places:
            break
        holder, key = generator.choice(places)
        kind = generator.randrange(4)
        if kind == 0:
            del holder[key]
        elif kind == 1:
            other, where = generator.choice(places)
            try:
                holder[key] = copy.deepcopy(other[where])
            except (KeyError, IndexError, TypeError):
                continue
        else:
            holder[key] = copy.deepcopy(generator.choice(VALUES))
    return "\n".join(json.dumps(item) for item in objects).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        for key in list(one) if isinstance(one, dict) else range(len(one)):
            yield one, key
            if isinstance(one[key], (dict, list)):
                waiting.append(one[key])


@contextmanager
def time_limit(seconds: int = SECONDS) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"it took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
