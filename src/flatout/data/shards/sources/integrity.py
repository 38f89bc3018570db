"""Checks that a file is intact by its structure, without decoding it.

Finds empty and truncated files, files of another kind under this name, and broken chunks. A flipped bit inside the
compressed data of a JPEG is not found: the format has no checksum for it. PNG has one, and it is checked. Each function
returns what is wrong, or None.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable

_AFTER_SCAN = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
"""In a scan, 0xff is followed by zero or by a restart marker; anything else ends the scan."""
_JPEG_PARTS = frozenset((0xC4, 0xCC, *range(0xC0, 0xC4), *range(0xC5, 0xC8), *range(0xC9, 0xCC), *range(0xCD, 0xD0)))
_JPEG_KNOWN = _JPEG_PARTS | {0xDA, 0xDB, 0xDC, 0xDD, 0xDE, 0xDF, *range(0xE0, 0xFF)}


def jpeg(data: bytes) -> str | None:
    if not data.startswith(b"\xff\xd8\xff"):
        return "it does not begin as a JPEG"
    position, scans = 2, 0
    while True:
        marker = data[position : position + 2]
        if len(marker) < 2:
            return "the JPEG is truncated"
        if marker[0] != 0xFF:
            return f"the JPEG has no marker at byte {position}"
        if marker[1] == 0xFF:  # padding before a marker
            position += 1
            continue
        if marker[1] == 0xD9:
            return None if scans else "the JPEG contains no picture"
        if marker[1] == 0x01 or 0xD0 <= marker[1] <= 0xD7:
            position += 2
            continue
        if marker[1] not in _JPEG_KNOWN or position + 4 > len(data):
            return f"the JPEG is damaged at byte {position}"
        position += 2 + int.from_bytes(data[position + 2 : position + 4], "big")
        if marker[1] == 0xDA:
            scans += 1
            end = _AFTER_SCAN.search(data, position)
            if end is None:
                return "the JPEG is truncated"
            position = end.start()


def png(data: bytes) -> str | None:
    if not data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "it does not begin as a PNG"
    position, view = 8, memoryview(data)
    while position + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, position)
        end = position + 12 + length
        if end > len(data):
            break
        if zlib.crc32(view[position + 4 : end - 4]) != struct.unpack_from(">I", data, end - 4)[0]:
            return f"a chunk of the PNG does not match its checksum (byte {position})"
        if kind == b"IEND":
            return None
        position = end
    return "the PNG is truncated"


def gif(data: bytes) -> str | None:
    if data[:6] not in (b"GIF87a", b"GIF89a"):
        return "it does not begin as a GIF"
    position = 13 + _colours(data, 10)
    while position < len(data):
        kind = data[position]
        if kind == 0x3B:
            return None
        if kind == 0x00:  # padding between blocks
            position += 1
            continue
        if kind not in (0x21, 0x2C):
            return f"the GIF is damaged at byte {position}"
        position += 2 if kind == 0x21 else 11 + _colours(data, position + 9)
        while position < len(data) and data[position]:
            position += 1 + data[position]
        position += 1
    return "the GIF is truncated"


def _colours(data: bytes, flags: int) -> int:
    """The size of a GIF's colour table, which is 0 if the flags say that there is none."""
    value = data[flags] if flags < len(data) else 0
    return 6 << (value & 7) if value & 0x80 else 0


def bmp(data: bytes) -> str | None:
    if not data.startswith(b"BM") or len(data) < 26:
        return "it does not begin as a BMP"
    return None if struct.unpack_from("<I", data, 2)[0] <= len(data) else "the BMP is truncated"


def webp(data: bytes) -> str | None:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP":
        return "it does not begin as a WebP"
    return None if struct.unpack_from("<I", data, 4)[0] + 8 <= len(data) else "the WebP is truncated"


def wav(data: bytes) -> str | None:
    if data[:4] not in (b"RIFF", b"RF64") or data[8:12] != b"WAVE":
        return "it does not begin as a WAV"
    position, seen = 12, set()
    while position + 8 <= len(data):
        kind, length = struct.unpack_from("<4sI", data, position)
        seen.add(kind)
        if kind == b"data":
            streamed = length in (0, 0xFFFF_FFFF)  # written to a pipe, which leaves the length open
            if not streamed and position + 8 + length > len(data):
                return "the WAV is truncated"
            return None if b"fmt " in seen else "the WAV has no format chunk"
        position += 8 + length + length % 2
    return "the WAV contains no samples"


def flac(data: bytes) -> str | None:
    return None if data.startswith((b"fLaC", b"ID3")) and len(data) > 42 else "it does not begin as FLAC"


def ogg(data: bytes) -> str | None:
    return None if data.startswith(b"OggS") and len(data) > 28 else "it does not begin as Ogg"


def mp3(data: bytes) -> str | None:
    frame = len(data) > 4 and data[0] == 0xFF and data[1] & 0xE0 == 0xE0
    return None if data.startswith(b"ID3") or frame else "it does not begin as MP3"


IMAGES: dict[str, Callable[[bytes], str | None]] = {
    ".jpg": jpeg, ".jpeg": jpeg, ".jfif": jpeg, ".png": png, ".gif": gif, ".bmp": bmp, ".webp": webp,
}  # fmt: skip
AUDIO: dict[str, Callable[[bytes], str | None]] = {
    ".wav": wav, ".flac": flac, ".ogg": ogg, ".opus": ogg, ".mp3": mp3,
}  # fmt: skip
_SIGNATURES: tuple[tuple[bytes, Callable[[bytes], str | None]], ...] = (
    (b"\xff\xd8\xff", jpeg), (b"\x89PNG", png), (b"GIF8", gif), (b"BM", bmp), (b"RIFF", webp),
)  # fmt: skip


def image(data: bytes, suffix: str) -> str | None:
    """A picture with the suffix of another format (a PNG named .jpg) is common and decodes, so it counts as intact."""
    for signature, check in _SIGNATURES:
        if data.startswith(signature):
            return check(data)
    return IMAGES[suffix](data) if data else "the file is empty"


def audio(data: bytes, suffix: str) -> str | None:
    return AUDIO[suffix](data) if data else "the file is empty"
