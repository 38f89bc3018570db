"""Unified diffs that `git apply` and `patch -p1` take."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

_NO_NEWLINE = "\\ No newline at end of file\n"


def diff(before: bytes, after: bytes, name: str) -> str:
    """The diff between two contents of the file `name`.

    Bytes that are not UTF-8 become lone surrogates, which `to_bytes` converts back.
    """
    if before == after:
        return ""
    end = "\t" if " " in name else ""  # a name with a space ends at the tab
    old, new = _lines(before), _lines(after)
    rows = difflib.unified_diff(old, new, f"a/{name}{end}", f"b/{name}{end}", lineterm="\n")
    return "".join(_closed(rows))


def to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _lines(content: bytes) -> list[str]:
    """Split at `\\n` alone: a `\\r` before it belongs to the line."""
    text = content.decode("utf-8", "surrogateescape")
    rows = text.split("\n")
    return [row + "\n" for row in rows[:-1]] + ([rows[-1]] if rows[-1] else [])


def _closed(rows: Iterator[str]) -> Iterator[str]:
    for row in rows:
        yield row if row.endswith("\n") else f"{row}\n{_NO_NEWLINE}"
