"""The list of cases: running ones and finished ones, of which two can be chosen for a comparison."""

from __future__ import annotations

import time
from collections.abc import Sequence

from flatout.report.formatting import duration, share
from flatout.report.html.components import chip
from flatout.report.html.markup import Child, Html, tag
from flatout.report.html.tables import Cell, Column, table
from flatout.serve.case_directory import FinishedCase, UnfinishedCase
from flatout.serve.pages.layout import page


def write(kept: Sequence[FinishedCase], begun: Sequence[UnfinishedCase], home: str, mark: str = "") -> str:
    """`mark` identifies this state of the list: the page polls whether it has changed."""
    running = [one for one in begun if one.running]
    cut_short = [one for one in begun if not one.running]
    return page(
        "Cases",
        tag(
            "section",
            tag("h1", "Cases", class_="verdict"),
            tag("p", tag("code", home), class_="lead"),
            tag(
                "p",
                "The list has changed: ",
                tag("a", "reload", href="/"),
                ".",
                role="status",
                hidden=True,
                id="new",
            ),
        ),
        tag("section", tag("h2", "Running now"), tag("ul", map(_running, running), class_="cards"))
        if running
        else None,
        _kept(kept) if kept else _nothing(bool(running)),
        _cut_short(cut_short),
        here="/",
        mark=mark or None,
    )


def when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def small_split(shares: Sequence[tuple[str, float]]) -> Child:
    """A small bar of the parts of a step, with its text in the label."""
    if not shares:
        return None
    described = ", ".join(f"{name} {share(part)}" for name, part in shares)
    return tag(
        "div",
        [tag("div", class_=f"segment {name}", style=f"flex-grow:{part:.4f}") for name, part in shares],
        class_="split small",
        role="img",
        aria_label=described,
        title=described,
    )


def _kept(kept: Sequence[FinishedCase]) -> Html:
    columns = [
        Column(""),
        Column("program", wide=True),
        Column("verdict", minor=True),
        Column("step", number=True),
        Column("where its time goes", minor=True),
        Column("commit", minor=True),
        Column("when", number=True, minor=True),
    ]
    form = tag(
        "form",
        tag(
            "p",
            tag("button", "Compare the two chosen", type="submit", id="compare"),
            tag("span", "Choose two cases. The older one is taken as `before`.", class_="quiet hint"),
            class_="tools",
        ),
        table(columns, [_row(one) for one in kept], f"{len(kept)} kept cases, the newest first", find="the cases"),
        action="/compare",
        method="get",
        id="cases",
    )
    return tag("section", form)


def _row(one: FinishedCase) -> list[Cell | Child]:
    failed = chip("failed", "failed") if one.failed else None
    link = tag("a", one.title, href=f"/case/{one.name}")
    return [
        tag("input", type="checkbox", name="case", value=one.name, aria_label=f"Choose {one.name}"),
        tag(
            "div",
            link,
            tag("div", chip(one.kind), failed, tag("span", one.name, class_="quiet name"), class_="beneath"),
        ),
        tag("div", one.verdict or "–", class_="clamped", title=one.verdict),
        Cell(duration(one.step_ms) if one.step_ms is not None else "–", one.step_ms or 0.0),
        small_split(one.shares),
        tag("code", one.commit) if one.commit else "",
        Cell(one.started[:16].replace("T", " ") or when(one.changed), one.changed),
    ]


def _running(one: UnfinishedCase) -> Html:
    return tag(
        "li",
        tag(
            "header",
            tag("span", class_="pulse", aria_hidden="true"),
            tag("h3", tag("a", one.name, href=f"/follow/{one.name}")),
            chip(one.kind),
            tag("span", f"since {when(one.began)}", class_="quiet"),
        ),
        class_="card",
    )


def _cut_short(begun: Sequence[UnfinishedCase]) -> Child:
    if not begun:
        return None
    names = [tag("li", tag("a", one.name, href=f"/follow/{one.name}"), f" {when(one.began)}") for one in begun[:50]]
    return tag("section", tag("details", tag("summary", f"{len(begun)} interrupted, without a case"), tag("ul", names)))


def _nothing(running: bool) -> Html:
    text = "There are no finished cases yet." if running else "There are no cases yet. Run "
    more = None if running else [tag("code", "flatout run PROGRAM"), " in this directory, and the case appears here."]
    return tag("section", tag("p", text, more))
