"""A Case as one HTML file that opens offline in any browser: `render(case, directory)`.

`views/` holds one file per view; `attachments/` reads the files that are kept with a case (its trace, its samples) and
the source; `assets/` holds the styles and scripts. All text and all tables are in the page as HTML; scripts add the
canvases, the charts, sorting and searching.
"""

from __future__ import annotations

from pathlib import Path

from flatout.model.case import Case
from flatout.report.html.context import ReportContext
from flatout.report.html.document import MARKER, document

__all__ = ["MARKER", "render"]


def render(case: Case, directory: Path | None = None) -> str:
    """The whole page. `directory` is where the case is kept: the timeline and the flame graph need it."""
    return document(ReportContext(case, directory))
