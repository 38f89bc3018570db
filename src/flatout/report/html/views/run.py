"""The run as one bar: where its wall clock went; over time as a strip; and the tree below."""

from __future__ import annotations

from flatout.model.case import RunPart, RunTree, Where
from flatout.model.run_tree import GROUPS, Stretch
from flatout.report.formatting import clean, duration, share
from flatout.report.html.components import file_and_line, folded
from flatout.report.html.context import ReportContext
from flatout.report.html.markup import Html, tag

TITLE = "The run"
NARROW = 0.09
LEAST = 0.002
"""Share of the run below which a part is left out of the tree."""
DEEPEST = 4

SWATCHES = {
    "start": "input",
    "tracing": "trace",
    "steps": "compute",
    "between epochs": "copy",
    "callbacks": "python",
    "checkpoints": "python",
    "summaries": "python",
    "validation": "copy",
    "prediction": "copy",
    "program": "input",
}
"""Colours are those of the parts of a step; what has none is idle."""


def bar(run: RunTree) -> Html:
    """One bar for the first screen."""
    groups = [(name, seconds / run.seconds, seconds) for name, seconds in run.groups()]
    text = ", ".join(f"{share(part)} {name}" for name, part, _ in groups if part >= 0.01)
    return tag(
        "figure",
        tag(
            "div",
            [_segment(name, part) for name, part, _ in groups],
            class_="split",
            role="img",
            aria_label=f"Where the time of the run goes: {text}",
        ),
        tag("ul", [_legend(run, name, part, value) for name, part, value in groups if part >= 0.01], class_="legend"),
        tag("figcaption", f"The run of {duration(1000 * run.seconds)}, by where its wall clock went."),
        class_="figure",
    )


def strip(run: RunTree) -> Html | None:
    """The run over time. Zooming makes it wider than the page: then it scrolls."""
    if not run.strip or not run.seconds > 0:
        return None
    stretches = [_stretch(one, run.seconds) for one in run.strip]
    marks = [_epoch(number, at / run.seconds) for number, at in enumerate(run.epoch_starts, 1) if at < run.seconds]
    words = "phases in the order in which they came" + (", epochs marked" if marks else "")
    return tag(
        "figure",
        tag(
            "div",
            tag("div", stretches, marks, class_="strip-time", role="img", aria_label=f"The run over time: {words}"),
            class_="strip",
            tabindex="0",
            role="group",
            aria_label="The run over time. Plus and minus zoom, Home shows all of it",
        ),
        tag(
            "figcaption",
            f"The run over time, {words}. ",
            tag("button", "Zoom in", type="button", data_zoom="2"),
            " ",
            tag("button", "Zoom out", type="button", data_zoom="0.5"),
            " ",
            tag("button", "All", type="button", data_zoom="0"),
        ),
        class_="figure",
    )


def _stretch(one: Stretch, whole: float) -> Html:
    group = next((name for name, kinds in GROUPS.items() if one.kind in kinds), one.kind)
    place = f"{one.where.file.rpartition('/')[2]}:{one.where.line}" if one.where is not None and one.where.file else ""
    code = clean(one.where.code or "", 120) if one.where is not None else ""
    told = " ".join(filter(None, (group, one.name if one.name != group else "", place)))
    text = f"{one.at:.1f} s, for {duration(1000 * one.seconds)}: {told}{f' — {code}' if code else ''}"
    left, width = (max(min(100 * value / whole, 100.0), 0.0) for value in (one.at, one.seconds))
    kind = SWATCHES.get(group, "idle")
    return tag("span", class_=f"stretch {kind}", style=f"left:{left:.4f}%;width:{width:.4f}%", title=text)


def _epoch(number: int, part: float) -> Html:
    return tag("span", class_="epoch", style=f"left:{100 * max(part, 0.0):.4f}%", title=f"epoch {number} begins")


def _segment(name: str, part: float) -> Html:
    words = tag("span", name, tag("b", share(part))) if part >= NARROW else None
    kind = SWATCHES.get(name, "idle")
    return tag("div", words, class_=f"segment {kind}", style=f"flex-grow:{part:.5f}", title=f"{name} {share(part)}")


def _legend(run: RunTree, name: str, part: float, seconds: float) -> Html:
    largest = run.of(*GROUPS[name])[0]
    return tag(
        "li",
        tag("span", class_=f"swatch {SWATCHES.get(name, 'idle')}", aria_hidden="true"),
        tag("strong", name),
        tag("span", f"{duration(1000 * seconds)} · {share(part)}", class_="amount"),
        tag("span", largest.name or None, " ", file_and_line(_place(largest)), class_="meaning"),
    )


def _place(part: RunPart) -> Where | None:
    if part.where is not None or not part.lines():
        return part.where
    return part.lines()[0].where


def tree(run: RunTree) -> Html:
    """All parts that are worth a line, each with what is inside of it."""
    parts = [_node(part, run.seconds, 0) for part in run.parts if part.seconds >= LEAST * run.seconds]
    return folded("The run as a tree, in seconds", tag("ul", parts, class_="tree"))


def _node(part: RunPart, whole: float, depth: int) -> Html:
    inside = [one for one in part.parts if one.seconds >= LEAST * whole] if depth < DEEPEST else []
    times = f" × {part.count:,}" if part.count > 1 else ""
    return tag(
        "li",
        tag("b", duration(1000 * part.seconds)),
        f" {share(part.seconds / whole)} {part.kind} {part.name}{times} ",
        file_and_line(part.where),
        tag("ul", [_node(one, whole, depth + 1) for one in inside]) if inside else None,
    )


def has_data(context: ReportContext) -> bool:
    return context.case.run is not None


def write(context: ReportContext) -> Html:
    run = context.case.run
    assert run is not None
    return tree(run)
