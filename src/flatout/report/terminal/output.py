"""What the terminal can show: its width, colour, and whether it knows more than ASCII."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass

from flatout.report.terminal.page import Page
from flatout.report.terminal.text import can_show, to_ascii

NARROWEST, WIDEST = 40, 160


@dataclass(frozen=True)
class Output:
    width: int
    color: bool
    unicode: bool

    @classmethod
    def of(cls, width: int | None, color: bool | None, unicode: bool | None) -> Output:
        """What was asked for; what was not follows standard output. A file or a pipe gets no colour."""
        if width is None:
            width = shutil.get_terminal_size((100, 24)).columns
        if color is None:
            color = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        if unicode is None:
            unicode = can_show(getattr(sys.stdout, "encoding", None))
        return cls(max(NARROWEST, min(WIDEST, width)), color, unicode)

    def page(self, base: str = "") -> Page:
        return Page(self.width, self.color, base)

    def text(self, page: Page) -> str:
        return page.text() if self.unicode else to_ascii(page.text())
