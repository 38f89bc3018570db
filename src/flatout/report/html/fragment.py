"""A case as a piece of HTML, for the output of a notebook's cell: verdict, step, findings, patch.

It has no scripts and names nothing outside of itself. All text goes through `markup.tag`, which escapes it. Colours are
those of the notebook where it has some (JupyterLab, VS Code), else they follow the browser's choice of light or dark.
"""

from __future__ import annotations

from collections.abc import Callable

from flatout.model.case import Case, Finding, Split, Steps, Where
from flatout.report.formatting import clean, duration, share
from flatout.report.html.components import with_code
from flatout.report.html.markup import Child, Html, tag, verbatim
from flatout.report.labels import NO_FINDINGS, STEP_NAMES, STEP_PARTS
from flatout.report.terminal import headline

MOST_FINDINGS = 3
MOST_PATCH_LINES = 60
STYLE = """
.flatout-case{--ink:var(--jp-content-font-color1,var(--vscode-foreground,#1c1f23));
--quiet:var(--jp-content-font-color2,var(--vscode-descriptionForeground,#5b626b));
--edge:var(--jp-border-color2,var(--vscode-panel-border,#d3d7dc));
--input:#2f6fb2;--trace:#7a5bb5;--python:#c26a1b;--compute:#2c8a57;--copy:#a33d6b;--idle:#8b929a;
color:var(--ink);font-size:13px;line-height:1.45;max-width:60rem;
border-left:3px solid var(--edge);padding:2px 0 2px 12px}
@media (prefers-color-scheme:dark){.flatout-case{
--ink:var(--jp-content-font-color1,var(--vscode-foreground,#e6e8eb));
--quiet:var(--jp-content-font-color2,var(--vscode-descriptionForeground,#a4abb3));
--edge:var(--jp-border-color2,var(--vscode-panel-border,#454b52));
--input:#6aa7e8;--trace:#b39be6;--python:#eda35d;--compute:#63c48f;--copy:#dc7ea8;--idle:#8b929a}}
.flatout-case p{margin:4px 0}.flatout-case .verdict{font-weight:600}.flatout-case .quiet{color:var(--quiet)}
.flatout-case .bar{display:flex;height:14px;margin:4px 0;border-radius:2px;overflow:hidden}
.flatout-case .bar span{display:block;height:100%}
.flatout-case .key{display:inline-block;width:.7em;height:.7em;border-radius:2px;margin-right:.35em}
.flatout-case .keys span{margin-right:1.2em;white-space:nowrap}
.flatout-case ol{margin:4px 0;padding-left:1.6em}.flatout-case pre{margin:4px 0;overflow:auto;color:var(--ink)}
"""

Place = Callable[[Where], str]
"""How a location is called: in a notebook `In [3] line 4`, elsewhere `train.py:12`."""


def plain(where: Where) -> str:
    name = (where.file or "").rpartition("/")[2]
    return f"{name}:{where.line}" if where.line else name


def render(case: Case, place: Place = plain) -> Html:
    return tag(
        "div",
        tag("style", Html(STYLE)),
        tag("p", with_code(headline(case)), class_="verdict"),
        _step(case.steps) if case.steps is not None else None,
        _findings(case, place),
        _patch(case.patch),
        [tag("p", clean(note.text, 300), class_="quiet") for note in case.notes if note.level != "info"],
        class_="flatout-case",
    )


def _step(steps: Steps) -> Child:
    ms = steps.ms
    text = (
        f"A step: {duration(ms.median)} ({duration(ms.p10)} to {duration(ms.p90)} for most of "
        f"{steps.count:,} {STEP_NAMES.get(steps.kind, 'steps')})"
    )
    return [tag("p", text), _bar(steps.split_ms) if steps.split_ms is not None else None]


def _bar(split: Split) -> Child:
    total = split.total()
    if not total > 0:
        return None
    parts = [(name, words, getattr(split, name) / total) for name, words in STEP_PARTS.items()]
    shown = [(name, words, of) for name, words, of in parts if of >= 0.001]
    pieces = [tag("span", style=f"width:{100 * of:.2f}%;background:var(--{name})") for name, _, of in shown]
    keys = [
        tag("span", tag("i", class_="key", style=f"background:var(--{name})"), f"{words} {share(of)}")
        for name, words, of in shown
    ]
    told = ", ".join(f"{words} {share(of)}" for _, words, of in shown)
    return [tag("div", pieces, class_="bar", role="img", aria_label=told), tag("p", keys, class_="keys quiet")]


def _findings(case: Case, place: Place) -> Child:
    found = case.findings[:MOST_FINDINGS]
    if not found:
        return tag("p", NO_FINDINGS, class_="quiet") if case.kind == "run" and case.steps is not None else None
    more = len(case.findings) - len(found)
    return [
        tag("ol", [tag("li", _finding(one, place)) for one in found]),
        tag("p", f"and {more} more: flatout show", class_="quiet") if more > 0 else None,
    ]


def _finding(one: Finding, place: Place) -> Child:
    cost = f", {share(one.cost_share)} of {'each step' if one.of == 'step' else 'the run'}" if one.cost_share else ""
    told = tag("p", f"{clean(one.summary, 300)} ({one.cause}{cost})")
    do = tag("p", clean(one.fixes[0].advice, 300), class_="quiet") if one.fixes else None
    if one.where is None:
        return [told, do]
    line = verbatim((one.where.code or "").strip(), 160)
    return [tag("p", tag("code", clean(place(one.where), 120)), " ", tag("code", line) if line else None), told, do]


def _patch(text: str) -> Child:
    if not text:
        return None
    lines = text.splitlines()
    more = f"\n… {len(lines) - MOST_PATCH_LINES} more lines" if len(lines) > MOST_PATCH_LINES else ""
    return tag("pre", verbatim("\n".join(lines[:MOST_PATCH_LINES]) + more, 20_000))
