"""Flame graphs: Python stacks sampled during the steps, and ops by scope."""

from __future__ import annotations

from flatout.report.html.attachments.stacks import Tree
from flatout.report.html.context import ReportContext
from flatout.report.html.markup import Html, data, tag

TITLE = "Flame graph"


def has_data(context: ReportContext) -> bool:
    return bool(context.flames)


def write(context: ReportContext) -> Html:
    return tag("div", [_flame(tree) for tree in context.flames])


def _flame(tree: Tree) -> Html:
    return tag(
        "div",
        tag("h3", tree.title, tag("small", tree.note)),
        tag(
            "div",
            tag("input", type="search", class_="find", placeholder="Search frames", aria_label="Search frames"),
            tag("span", class_="found quiet", aria_live="polite"),
            tag(
                "span",
                tag("button", "All", type="button", data_do="all", title="Show the whole graph"),
                class_="buttons",
            ),
            class_="tools",
        ),
        tag(
            "div",
            tag("canvas"),
            class_="frames",
            tabindex="0",
            role="application",
            aria_label=f"Flame graph, {tree.title}: {tree.note}. Arrow keys move between frames, Enter goes into one, "
            "Home shows all.",
        ),
        tag("div", class_="tip", hidden=True),
        tag("p", "Select a frame to go into it.", class_="selected", role="status"),
        data({"unit": tree.unit, "root": tree.root}),
        class_="flame",
    )
