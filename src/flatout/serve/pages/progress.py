"""The progress of a run or tune. The page is empty at first; its script requests the progress each second."""

from __future__ import annotations

from flatout.report.html.components import chip
from flatout.report.html.markup import tag
from flatout.serve.case_directory import UnfinishedCase
from flatout.serve.pages.layout import page


def write(one: UnfinishedCase) -> str:
    state = "running" if one.running else "interrupted"
    facts = [
        tag("div", tag("dt", title), tag("dd", "–", data_field=field))
        for field, title in (
            ("seconds", "since the start"),
            ("steps", "steps so far"),
            ("median_ms", "median step"),
            ("last_ms", "last steps"),
            ("what", "what is a step"),
            ("trials", "trials finished"),
        )
    ]
    return page(
        one.name,
        tag(
            "section",
            tag("p", f"flatout {one.kind} ", chip(state, "good" if one.running else "failed"), class_="kind"),
            tag("h1", one.name, class_="verdict follow"),
            tag("p", "reading the files written so far", class_="lead phase", role="status", data_field="phase"),
            tag("p", class_="alert error", hidden=True, data_field="error"),
            tag("dl", facts, class_="facts"),
            tag("p", tag("a", "Open the report", href=f"/case/{one.name}"), hidden=True, data_field="done"),
        ),
        tag(
            "section",
            tag("h2", "Step times"),
            tag("figure", tag("div", class_="chart live", data_field="times"), class_="figure"),
            tag("p", class_="quiet", data_field="scale"),
            hidden=True,
            data_part="steps",
        ),
        tag(
            "section",
            tag("h2", "Trials"),
            tag("div", data_field="rows", class_="scroll", tabindex="0", role="region", aria_label="Trials"),
            hidden=True,
            data_part="trials",
        ),
        live=f"/follow/{one.name}/progress.json",
    )
