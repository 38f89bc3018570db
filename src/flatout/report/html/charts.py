"""Charts for the page: what to draw is said here in plotly's own terms, the drawing is done in the browser.

Colours are given by role (`@input`, `@accent`): the page fills in those of the theme that is on. Text goes through
`label`, because plotly reads a little HTML in the text it is given.
"""

from __future__ import annotations

import html
from typing import Any

from flatout.report.html.markup import Child, Html, data, tag
from flatout.report.terminal.text import clean, elide


def chart(
    traces: list[dict[str, Any]], layout: dict[str, Any], says: str, *, height: int = 300, caption: Child = None
) -> Html:
    """A figure. `says` tells in a sentence what the chart shows, for those who cannot see it."""
    return tag(
        "figure",
        tag("div", class_="chart", style=f"height:{height}px", role="img", aria_label=says),
        tag("figcaption", caption) if caption else None,
        data({"data": traces, "layout": layout, "height": height}),
        class_="figure",
    )


def label(text: object, limit: int = 80) -> str:
    """Text for plotly: what looks like its markup is shown as it stands."""
    return html.escape(elide(clean(text, 400), limit, middle=True), quote=False)
