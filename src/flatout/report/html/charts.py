"""Charts of the page: plotly's description of what to draw, and plotly's script, which draws it in the browser.

Colours are given by role (`@input`, `@accent`); the page fills in those of the current theme. Text goes through
`label`, because plotly interprets a little HTML in the text it is given.

The script is read from the installed plotly package, which is not imported: that would take a second. In the page it is
compressed, and it is unpacked when the first chart comes into view, so that a report stays small and opens quickly.
"""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import html
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flatout.model.errors import ToolMissing
from flatout.report.formatting import clean, elide
from flatout.report.html.markup import Child, Html, data, tag


def chart(
    traces: list[dict[str, Any]], layout: dict[str, Any], summary: str, *, height: int = 300, caption: Child = None
) -> Html:
    """A figure. `summary` says in one sentence what the chart shows, for screen readers."""
    return tag(
        "figure",
        tag("div", class_="chart", style=f"height:{height}px", role="img", aria_label=summary),
        tag("figcaption", caption) if caption else None,
        data({"data": traces, "layout": layout, "height": height}),
        class_="figure",
    )


def label(text: object, limit: int = 80) -> str:
    """Text for plotly, with what it would take for markup escaped."""
    return html.escape(elide(clean(text, 400), limit, middle=True), quote=False)


@dataclass(frozen=True)
class Script:
    packed: str
    """gzip, base64."""
    hash: str
    """The hash that a Content-Security-Policy names it by."""


@functools.cache
def chart_library() -> Script:
    source = _file().read_bytes()
    return Script(pack(source), content_hash(source))


def pack(source: bytes) -> str:
    # Without a time stamp, so that the same case gives the same report.
    return base64.b64encode(gzip.compress(source, 6, mtime=0)).decode("ascii")


def content_hash(source: bytes) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(source).digest()).decode('ascii')}"


def _file() -> Path:
    found = importlib.util.find_spec("plotly")
    for directory in (found.submodule_search_locations or ()) if found else ():
        script = Path(directory) / "package_data" / "plotly.min.js"
        if script.is_file():
            return script
    raise ToolMissing(
        "The charts of a report come from plotly, which is not installed. Install it with "
        '`pip install "flatout[report]"`, or look at the case in the terminal with `flatout show`.'
    )
