"""Two cases compared: the verdict, both steps as bars on one scale, the change of each part with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from flatout.compare import formatting
from flatout.compare.change import Change
from flatout.compare.comparison import Comparison
from flatout.compare.differences import Difference
from flatout.model.case import Interval
from flatout.report.formatting import share
from flatout.report.html.components import chip, facts
from flatout.report.html.markup import Child, Html, tag
from flatout.report.terminal.comparison import BUSY
from flatout.serve.pages.layout import page
from flatout.store.run_summary import Run

KINDS = {"slower": "lost", "faster": "won", "same": "", "unknown": "warning"}


def write(found: Comparison) -> str:
    return page(
        "Comparison",
        tag(
            "section",
            tag("p", "flatout compare", class_="kind"),
            tag("h1", found.verdict, class_="verdict"),
            _bars(found),
            _sides(found),
            _warnings(found),
        ),
        tag("section", tag("h2", "What changed"), _changes(found)),
        tag("section", tag("h2", "What differs"), _differences([*found.program, *found.environment])),
        tag(
            "section",
            tag("h2", "How certain this is"),
            tag("p", formatting.interval_note(found.spread, 2), class_="lead"),
        ),
    )


def _bars(found: Comparison) -> Html:
    longest = max(found.step.before_ms, found.step.after_ms)
    return tag(
        "figure",
        [
            _bar(label, side, total, longest)
            for label, side, total in (
                ("before", found.before, found.step.before_ms),
                ("after", found.after, found.step.after_ms),
            )
        ],
        class_="figure sides",
    )


def _bar(label: str, side: Sequence[Run], total: float, longest: float) -> Html:
    parts = side[-1].parts_ms
    whole = sum(parts.values())
    shares = [(name, value / whole) for name, value in parts.items() if value > 0] if whole > 0 else [("idle", 1.0)]
    described = ", ".join(f"{name} {share(part)}" for name, part in shares) if whole > 0 else "not split"
    segments = [
        tag(
            "div",
            tag("span", name) if part > 0.12 and whole > 0 else None,
            class_=f"segment {name}",
            style=f"flex-grow:{part:.4f}",
            title=f"{name} {share(part)}",
        )
        for name, part in shares
    ]
    return tag(
        "div",
        tag("span", label, class_="quiet"),
        tag(
            "div",
            tag(
                "div",
                segments,
                class_="split",
                role="img",
                aria_label=f"{label}: {formatting.milliseconds(total)}; {described}",
            ),
            style=f"width:{100 * total / longest:.2f}%" if longest > 0 else None,
        ),
        tag("b", formatting.milliseconds(total)),
        class_="side",
    )


def _sides(found: Comparison) -> Html:
    swap = urlencode({"before": found.after[0].name, "after": found.before[0].name})
    return facts(
        [
            ("before", _names(found.before)),
            ("after", _names(found.after)),
            ("program", found.after[-1].title),
            ("source", _states(found)),
            ("reverse", tag("a", "swap the sides", href=f"/compare?{swap}")),
        ]
    )


def _names(side: Sequence[Run]) -> list[Child]:
    return [tag("a", run.name, href=f"/case/{run.name}") for run in side]


def _states(found: Comparison) -> str:
    old, new = formatting.source_state(found.before[-1]), formatting.source_state(found.after[-1])
    return f"{old} → {new}" if old and new and old != new else old or new


def _warnings(found: Comparison) -> Child:
    warnings = []
    if not found.same_machine:
        warnings.append(formatting.OTHER_MACHINE)
    if not found.same_program:
        warnings.append(formatting.OTHER_PROGRAM)
    for run in (*found.before, *found.after):
        if (run.others or 0.0) >= BUSY:
            warnings.append(
                f"Other programs used {share(run.others)} of the cores during {run.name}, which widens the interval."
            )
        if run.failed:
            warnings.append(f"{run.name} failed: {run.failed}")
    return (
        tag("ul", [tag("li", text, class_="note warning") for text in warnings], class_="notes") if warnings else None
    )


def _changes(found: Comparison) -> Html:
    rows = [found.step, *found.parts]
    edges = [edge for row in rows if (one := _plotted(row, found)) for edge in (one.low, one.high)]
    reach = max([0.05, *map(abs, edges)])
    head = [tag("th", name, scope="col", class_=kind or None) for name, kind in (
        ("", ""), ("before", "number"), ("after", "number"), ("change", "number"), ("", "plot"), ("", "")
    )]  # fmt: skip
    head[4] = tag("th", tag("div", _axis(reach), class_="axis"), scope="col", class_="plot")
    return tag(
        "div",
        tag(
            "table",
            tag(
                "caption", "Time of the median step and of its parts; the plot shows the change as a share of the step"
            ),
            tag("thead", tag("tr", head)),
            tag("tbody", [_row(row, found, reach) for row in rows]),
            class_="forest changes",
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label="What changed",
    )


def _row(row: Change, found: Comparison, reach: float) -> Html:
    name, before, after, change, outcome = formatting.change_row(row)
    return tag(
        "tr",
        tag("th", name, scope="row"),
        tag("td", before, class_="number"),
        tag("td", after, class_="number"),
        tag("td", change, class_="number"),
        tag("td", _mark(_plotted(row, found), row.outcome, reach), class_="plot"),
        tag("td", chip(outcome, f"status {KINDS[row.outcome]}")),
    )


def _plotted(row: Change, found: Comparison) -> Interval | None:
    """The change as a share of the step before, so that all rows have one scale."""
    one, whole = row.difference_ms, found.step.before_ms
    return Interval(one.ratio / whole, one.low / whole, one.high / whole) if one is not None and whole > 0 else None


def _mark(one: Interval | None, outcome: str, reach: float) -> Html:
    kind = KINDS[outcome]
    marks: list[Child] = [tag("span", class_="one", style="left:50%")]
    if one is not None:
        low, high = _at(one.low, reach), _at(one.high, reach)
        marks.append(tag("span", class_=f"whisker {kind}", style=f"left:{low:.2f}%;width:{max(0.4, high - low):.2f}%"))
        marks.append(tag("span", class_=f"dot {kind}", style=f"left:{_at(one.ratio, reach):.2f}%"))
    return tag("div", marks, class_="track", aria_hidden="true")


def _axis(reach: float) -> list[Child]:
    step = next((tick for tick in (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10) if reach / tick < 2.5), 50)
    ticks = [tick for tick in (-2 * step, -step, 0, step, 2 * step) if abs(tick) <= reach]
    marks: list[Child] = []
    for tick in ticks:
        text = f"{100 * tick:+.0f} %".replace("-", "−") if tick else "0"
        marks.append(tag("span", text, style=f"left:{_at(tick, reach):.2f}%", class_="tick"))
    return marks


def _at(value: float, reach: float) -> float:
    return 50 + 50 * max(-1.0, min(1.0, value / reach))


def _differences(rows: Sequence[Difference]) -> Html:
    if not rows:
        return tag("p", formatting.NO_DIFFERENCES)
    return tag(
        "div",
        tag(
            "table",
            tag("thead", tag("tr", [tag("th", name, scope="col") for name in ("what", "before", "after", "of")])),
            tag("tbody", map(_difference, rows)),
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label="What differs",
    )


def _difference(one: Difference) -> Html:
    level = "program" if one.level in ("other", "changed") else one.level
    kind = "hot" if one.level in ("machine", "other") else ""
    cells = [
        tag("th", one.what, scope="row"),
        tag("td", one.before, class_="side-text"),
        tag("td", one.after, class_="side-text"),
        tag("td", chip(level, kind)),
    ]
    return tag("tr", cells)
