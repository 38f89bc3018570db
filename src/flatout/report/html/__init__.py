"""A Case as one HTML file that opens offline in any browser: `render(case, directory)`.

`views/` holds one file per view; `beside/` reads what lies beside a case (its trace, its samples, the source);
`assets/` is what the browser runs. All text and all tables are in the page as HTML; scripts add the canvases, the
charts, sorting and searching.
"""

from __future__ import annotations

from pathlib import Path

from flatout.model.case import Case
from flatout.report.html.document import MARKER, document
from flatout.report.html.material import Material

__all__ = ["MARKER", "render"]


def render(case: Case, directory: Path | None = None) -> str:
    """The whole page. `directory` is where the case is kept: with it, there is a timeline and a flame graph."""
    return document(Material(case, directory))
