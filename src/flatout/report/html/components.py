"""Elements that several views share: lists of facts, source frames, chips, bars."""

from __future__ import annotations

from collections.abc import Iterable

from flatout.model.case import Where
from flatout.report.html.context import ReportContext
from flatout.report.html.markup import Child, Html, tag, verbatim


def facts(items: Iterable[tuple[str, Child]]) -> Html:
    """Short facts in a row, each with its name and its value."""
    return tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in items if value], class_="facts")


def chip(text: str, kind: str = "") -> Html:
    return tag("span", text, class_=f"chip {kind}".strip())


def bar(share: float | None, kind: str = "") -> Html:
    """A small horizontal bar that repeats the number next to it."""
    width = 100 * min(1.0, max(0.0, share or 0.0))
    return tag("span", tag("span", style=f"width:{width:.2f}%"), class_=f"bar {kind}".strip(), aria_hidden="true")


def subheading(text: str, note: Child = None) -> Html:
    return tag("h3", text, tag("small", note) if note else None)


def missing(text: str) -> Html:
    return tag("p", text, class_="quiet")


def folded(summary: Child, *content: Child, open_: bool = False, kind: str = "") -> Html:
    return tag("details", tag("summary", summary), *content, open=open_, class_=kind or None)


def spot(context: ReportContext, where: Where | None, width: int = 60) -> Child:
    """`file:line`, which the browser does not break."""
    text = context.location(where, width)
    return tag("code", text, class_="spot", title=str(where)) if text else None


def file_and_line(where: Where | None) -> Child:
    """For tables, which have little room: the file without its path."""
    if where is None or not where.file:
        return None
    line = f":{where.line}" if where.line else ""
    return tag("code", where.file.rpartition("/")[2] + line, class_="spot", title=str(where))


def code(context: ReportContext, where: Where | None) -> Child:
    """The lines around a location, with that line marked."""
    frame = context.frame(where)
    if frame is None:
        return spot(context, where)
    rows = [
        tag(
            "span",
            tag("span", f"{number}", class_="line-number", aria_hidden="true"),
            tag("span", verbatim(text) or " ", class_="line-text"),
            class_="line marked" if number == frame.marked else "line",
        )
        for number, text in enumerate(frame.lines, frame.first)
    ]
    return tag(
        "figure",
        tag("figcaption", spot(context, where), _inside(where)),
        tag("pre", tag("code", rows), tabindex="0", aria_label=f"source at {context.location(where)}"),
        class_="code",
    )


def _inside(where: Where | None) -> Child:
    return tag("span", f"in {where.function}", class_="quiet") if where and where.function else None


def with_code(text: str) -> list[Child]:
    """A sentence in which what stands between backticks is code."""
    parts = text.split("`")
    whole = len(parts) % 2 == 1
    return [tag("code", part) if number % 2 else part for number, part in enumerate(parts)] if whole else [text]
