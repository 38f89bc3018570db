"""Source files as bytes and as text, so that what an edit does not change stays the same, byte for byte."""

from __future__ import annotations

import codecs
import io
import re
import tokenize
from dataclasses import dataclass
from pathlib import Path

_LINE_END = re.compile(r"\r\n?|\n")


@dataclass(frozen=True)
class Encoded:
    """The text of a file with its own line ends, and its encoding."""

    text: str
    encoding: str
    mark: bytes = b""
    """A byte order mark, which is not part of the text."""

    def bytes_of(self, text: str) -> bytes:
        return self.mark + text.encode(self.encoding)


def lines(text: str) -> list[str]:
    """As Python and editors count them. `str.splitlines` ends a line at form feeds and separators of Unicode too."""
    rows = _LINE_END.split(text)
    return rows if rows[-1] else rows[:-1]


def load(path: str | Path) -> Encoded | None:
    """None if the file does not exist or cannot be decoded."""
    try:
        return decode(Path(path).read_bytes())
    except (OSError, SyntaxError, UnicodeError, LookupError):
        return None


def decode(content: bytes) -> Encoded:
    """By the coding cookie, as Python reads it."""
    end = content.find(b"\n", content.find(b"\n") + 1)
    if content.find(b"coding", 0, end if end >= 0 else len(content)) < 0 and not content.startswith(codecs.BOM_UTF8):
        # No cookie in the first two lines. What is decoded as UTF-8 is encoded to the same bytes.
        try:
            return Encoded(content.decode("utf-8"), "utf-8")
        except UnicodeDecodeError:
            pass  # the same error, in Python's words
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    encoding = "utf-8" if encoding == "utf-8-sig" else encoding
    text = content[len(mark) :].decode(encoding)
    if mark + text.encode(encoding) != content:
        raise UnicodeError("encoding the text again gives other bytes")
    return Encoded(text, encoding, mark)
