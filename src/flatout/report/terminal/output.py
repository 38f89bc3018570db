"""What the terminal can show: its width, colour, and whether it can show more than ASCII."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from dataclasses import dataclass
from typing import TextIO

from rich.cells import cell_len

from flatout.report.terminal.page import Page

NARROWEST, WIDEST = 40, 160
GLYPHS = "█▓▒░▚┄▁▂▃▄▅▆▇→–…·×µ±≥≤─◀"
_ASCII = dict(zip(map(ord, GLYPHS), "#%+=x._.-=+*%>-~-xu+><-<", strict=True)) | {ord("’"): "'", 0x2212: "-", 0xA0: " "}
"""What the views draw with, and the ASCII characters of the same width for terminals without Unicode."""


@dataclass(frozen=True)
class Output:
    width: int
    color: bool
    unicode: bool

    @classmethod
    def of(cls, width: int | None, color: bool | None, unicode: bool | None) -> Output:
        """The given settings; the rest is taken from standard output. A file or a pipe gets no colour."""
        if width is None:
            width = columns()
        if color is None:
            color = styled(sys.stdout)
        if unicode is None:
            unicode = can_show(getattr(sys.stdout, "encoding", None))
        return cls(max(NARROWEST, min(WIDEST, width)), color, unicode)

    def page(self, base: str = "") -> Page:
        return Page(self.width, self.color, base)

    def text(self, page: Page) -> str:
        return page.text() if self.unicode else to_ascii(page.text())


def columns() -> int:
    """Of the terminal that a person sits at, also where standard output goes through `less` or `tee`."""
    if not os.environ.get("COLUMNS"):
        for stream in (sys.__stdout__, sys.__stderr__, sys.__stdin__):
            try:
                if stream is not None and (found := os.get_terminal_size(stream.fileno()).columns) > 0:
                    return found
            except (OSError, ValueError):  # no terminal; closed
                continue
    return shutil.get_terminal_size((100, 24)).columns


def styled(stream: TextIO) -> bool:
    """Whether colours and bold letters are wanted there."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def can_show(encoding: str | None) -> bool:
    try:
        GLYPHS.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def to_ascii(text: str) -> str:
    """Every character by one of the same width, so that columns stay aligned."""
    translated = text.translate(_ASCII)
    return "".join(c if c < "\x80" else _plain(c, translated[max(place - 1, 0)]) for place, c in enumerate(translated))


def _plain(character: str, before: str) -> str:
    """`é` → `e`, `n²` → `n2`; behind a digit a raised one would make another number."""
    width = cell_len(character)
    plain = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    raised = unicodedata.decomposition(character).startswith("<super>") and before.isdigit()
    return plain if len(plain) == width and not raised else "?" * width
