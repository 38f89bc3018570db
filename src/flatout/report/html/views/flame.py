"""Flame graphs: Python stacks that were sampled while the steps ran, and the ops by their scopes."""

from __future__ import annotations

from flatout.report.html.beside.stacks import Tree
from flatout.report.html.markup import Html, data, tag
from flatout.report.html.material import Material

TITLE = "Flame graph"


def has_data(material: Material) -> bool:
    return bool(material.flames)


def write(material: Material) -> Html:
    return tag("div", [_flame(tree) for tree in material.flames])


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
