"""Views of what `check` found: one file per format, each with `render(view)` → text."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path

from flatout.check.driver import Report

FORMATS = ("concise", "full", "json", "sarif", "github", "gitlab", "junit")


@dataclass(frozen=True)
class View:
    """A report, and what views need besides."""

    report: Report
    root: Path
    """Paths are given relative to it, where they lie below."""
    texts: dict[str, list[str]]
    """Lines of the files with findings, for views that show code; of notebooks, none."""

    def relative(self, path: str) -> str:
        try:
            return Path(path).resolve().relative_to(self.root.resolve()).as_posix()
        except (ValueError, OSError):
            return Path(path).as_posix()


def render(name: str, view: View) -> str:
    module = importlib.import_module(f"flatout.check.output.{name}")
    return str(module.render(view))
