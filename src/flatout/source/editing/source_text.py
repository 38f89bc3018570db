"""Source files as bytes and as text, so that what an edit leaves alone stays as it is, byte for byte."""

from __future__ import annotations

import codecs
import io
import tokenize
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Encoded:
    """A file's text with its own line ends, and how it was encoded."""

    text: str
    encoding: str
    mark: bytes = b""
    """A byte order mark, which is no part of the text."""

    def bytes_of(self, text: str) -> bytes:
        return self.mark + text.encode(self.encoding)


def load(path: str | Path) -> Encoded | None:
    """None for a file that is gone, or is not Python source by its encoding."""
    try:
        return decode(Path(path).read_bytes())
    except (OSError, SyntaxError, UnicodeError, LookupError):
        return None


def decode(content: bytes) -> Encoded:
    """By the coding cookie, as Python reads it."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    encoding = "utf-8" if encoding == "utf-8-sig" else encoding
    text = content[len(mark) :].decode(encoding)
    if mark + text.encode(encoding) != content:
        raise UnicodeError("the file does not come back as it was")
    return Encoded(text, encoding, mark)
