"""The report of `check` as text: one file per format, each with `render(view)`."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path

from flatout.check.driver import Report

FORMATS = ("concise", "full", "json", "sarif", "github", "gitlab", "junit")


@dataclass(frozen=True)
class View:
    """A report, and what the formats need in addition."""

    report: Report
    root: Path
    """Paths below this directory are shown relative to it."""
    texts: dict[str, list[str]]
    """Lines of the files with findings, for formats that show code. Empty for notebooks."""

    def relative(self, path: str) -> str:
        try:
            return Path(path).resolve().relative_to(self.root.resolve()).as_posix()
        except (ValueError, OSError):
            return Path(path).as_posix()


def render(name: str, view: View) -> str:
    module = importlib.import_module(f"flatout.check.output.{name}")
    return str(module.render(view))
