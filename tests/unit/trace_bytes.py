"""Makes XPlane bytes for tests, so that a test states the trace that it reads."""

from __future__ import annotations

import struct
from typing import Any

Event = tuple[str, float, float, dict[str, Any]]
"""Name, start and duration in nanoseconds, stats."""


class Reference(str):
    """A string that is stored once per plane and referred to, as the profilers do."""


SMALL = [bytes([value]) for value in range(0x80)]
"""Most numbers: tags, lengths, references. Traces of tests have a million of them."""


def number(value: int) -> bytes:
    if 0 <= value < 0x80:
        return SMALL[value]
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(tag: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return number(tag << 3) + number(value)
    content = value.encode() if isinstance(value, str) else value
    return number(tag << 3 | 2) + number(len(content)) + content


def plane(
    name: str,
    lines: dict[str, list[Event]],
    stats: dict[str, Any] | None = None,
    shared: dict[str, dict[str, Any]] | None = None,
    timestamp_ns: int = 1000,
) -> bytes:
    """A plane's bytes. `shared` holds stats by the name of the event, as TPU planes have them."""
    names: dict[str, int] = {}
    texts: dict[str, int] = {}

    def text(value: str) -> int:
        return texts.setdefault(value, len(texts) + 1)

    def stat(tag: int, key: str, value: Any) -> bytes:
        head = field(1, text(key))
        if isinstance(value, Reference):
            return field(tag, head + field(7, text(value)))
        if isinstance(value, float):
            return field(tag, head + number(2 << 3 | 1) + struct.pack("<d", value))
        if isinstance(value, bytes):
            return field(tag, head + field(6, value))
        if isinstance(value, str):
            return field(tag, head + field(5, value))
        return field(tag, head + field(4 if value < 1 << 62 else 3, value))

    out = b""
    for place, (title, events) in enumerate(lines.items(), 1):
        content = [field(1, place), field(2, title), field(3, timestamp_ns)]
        for event_name, start, duration, event_stats in events:
            key = names.setdefault(event_name, len(names) + 1)
            body = field(1, key) + field(2, round(start * 1000)) + field(3, round(duration * 1000))
            body += b"".join(stat(4, *item) for item in event_stats.items())
            content.append(field(4, body))
        out += field(3, b"".join(content))
    for event_name, key in names.items():
        body = field(1, key) + field(2, event_name)
        body += b"".join(stat(5, *item) for item in (shared or {}).get(event_name, {}).items())
        out += field(4, field(1, key) + field(2, body))
    facts = b"".join(stat(6, *item) for item in (stats or {}).items())
    for value, key in texts.items():
        out += field(5, field(1, key) + field(2, field(1, key) + field(2, value)))
    return field(2, name) + out + facts


def space(*planes: bytes, host: str = "host") -> bytes:
    return b"".join(field(1, content) for content in planes) + field(4, host)
