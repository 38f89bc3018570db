"""The first screen: the verdict, where the time of a step goes as a bar, and the main numbers."""

from __future__ import annotations

from flatout.model.case import Case, Split, Steps
from flatout.report.formatting import duration, share
from flatout.report.html.components import facts, spot, with_code
from flatout.report.html.context import ReportContext
from flatout.report.html.markup import Child, Html, tag
from flatout.report.html.views import run
from flatout.report.labels import STEP_PARTS, name_of_steps
from flatout.report.terminal import headline, tune_screen

NARROW = 0.11
"""Parts of the bar below this share are too narrow for their name."""


def write(context: ReportContext) -> Html:
    case = context.case
    return tag(
        "section",
        tag("p", f"flatout {case.kind}", class_="kind"),
        tag("h1", with_code(headline(case)), class_="verdict"),
        _how_known(case) if case.kind == "tune" else None,
        _failure(case),
        run.bar(case.run) if case.run is not None and case.run.seconds > 0 else None,
        run.strip(case.run) if case.run is not None else None,
        _split(case.steps) if case.steps else None,
        _numbers(context) if case.steps else _trace_numbers(case),
        _notes(case),
        id="summary",
        aria_label="Summary",
    )


def _how_known(case: Case) -> Child:
    told = tune_screen.how_known(case)
    return tag("p", told, class_="quiet") if told else None


def _failure(case: Case) -> Child:
    program = case.program
    if program.error:
        return tag("p", tag("strong", "The program failed: "), program.error, class_="alert error", role="note")
    if program.signal:
        return tag("p", f"The program was ended by {program.signal}.", class_="alert error", role="note")
    return None


def _split(steps: Steps) -> Child:
    split = steps.split_ms
    total = split.total() if split else 0.0
    if split is None or total <= 0:
        return (
            tag("p", f"Where the time of a step goes: {steps.split_from}.", class_="quiet")
            if steps.split_from
            else None
        )
    parts = [(name, float(getattr(split, name))) for name in STEP_PARTS if getattr(split, name) > 0]
    return tag(
        "figure",
        tag(
            "div",
            [_segment(name, value / total) for name, value in parts],
            class_="split",
            role="img",
            aria_label=_description(split, total),
        ),
        tag("ul", [_legend(name, value, value / total) for name, value in parts], class_="legend"),
        tag("figcaption", f"One step of {duration(steps.ms.median)}, by where its time goes. From: {steps.split_from}.")
        if steps.split_from
        else None,
        class_="figure",
    )


def _description(split: Split, total: float) -> str:
    parts = (f"{share(getattr(split, name) / total)} {words}" for name, words in STEP_PARTS.items())
    return "Where the time of a step goes: " + ", ".join(part for part in parts if not part.startswith("0 %"))


def _segment(name: str, part: float) -> Html:
    words = tag("span", name, tag("b", share(part))) if part >= NARROW else None
    return tag("div", words, class_=f"segment {name}", style=f"flex-grow:{part:.5f}", title=f"{name} {share(part)}")


def _legend(name: str, value: float, part: float) -> Html:
    return tag(
        "li",
        tag("span", class_=f"swatch {name}", aria_hidden="true"),
        tag("strong", name),
        tag("span", f"{duration(value)} · {share(part)}", class_="amount"),
        tag("span", STEP_PARTS[name], class_="meaning"),
    )


def _numbers(context: ReportContext) -> Html:
    steps = context.case.steps
    assert steps is not None
    return facts(
        [
            ("median step", tag("b", duration(steps.ms.median))),
            ("p10 – p90", f"{duration(steps.ms.p10)} – {duration(steps.ms.p90)}"),
            (name_of_steps(steps.kind), f"{steps.count:,}"),
            ("warm-up, not included", _warmup(steps)),
            ("outliers", f"{steps.outliers:,}" if steps.outliers else None),
            ("found by", steps.found_by),
            ("where", spot(context, steps.where, 48)),
        ]
    )


def _warmup(steps: Steps) -> str | None:
    if not steps.warmup:
        return None
    return f"{steps.warmup:,} step{'' if steps.warmup == 1 else 's'}, {duration(steps.warmup_ms)}"


def _trace_numbers(case: Case) -> Child:
    if not case.devices:
        return None
    return facts((device.name, f"busy {share(device.busy_share)}") for device in case.devices[:8])


def _notes(case: Case) -> Child:
    if not case.notes:
        return None
    return tag(
        "ul",
        [
            tag(
                "li",
                tag("strong", {"error": "Error", "warning": "Warning"}.get(note.level, "Note")),
                f" {note.text} {note.todo}".rstrip(),
                class_=f"note {note.level if note.level in ('error', 'warning') else 'info'}",
            )
            for note in case.notes[:40]
        ],
        class_="notes",
        aria_label="Notes",
    )
