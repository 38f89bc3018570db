"""The page around the views: head, policy, navigation, sections, data, scripts, in one file that loads nothing else.

The Content-Security-Policy forbids every request, and every script except the two whose hashes it names: the page's own
and the chart library. If a text from a case ever got past the escaping, the browser would still not run it.
"""

from __future__ import annotations

from importlib.resources import files

from flatout.model.case import Case
from flatout.model.version import __version__
from flatout.report.html.charts import chart_library, content_hash
from flatout.report.html.components import missing
from flatout.report.html.context import ReportContext
from flatout.report.html.markup import Html, block, data, tag
from flatout.report.html.views import VIEWS, View, summary
from flatout.source.notebooks.program import by_cells

SCRIPTS = (
    "core.js",
    "theme.js",
    "charts.js",
    "tables.js",
    "canvas.js",
    "timeline_data.js",
    "timeline_draw.js",
    "timeline_input.js",
    "timeline.js",
    "flame.js",
    "strip.js",
    "page.js",
)
"""The page's own scripts, in the order of their dependencies."""
STYLES = ("base.css", "views.css", "canvas.css", "print.css")
MARKER = "<!-- a report of flatout -->"
"""Marks a file as a report, which `flatout report` may overwrite."""


def document(context: ReportContext) -> str:
    written = [(view, section) for view in VIEWS if (section := _section(view, context)) is not None]
    filled, sections = [view for view, _ in written], [section for _, section in written]
    library = chart_library() if any('class="chart"' in section for section in sections) else None
    script = Html(_scripts())
    page = tag(
        "html",
        tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=_policy(script, library.hash if library else "")),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("meta", name="referrer", content="no-referrer"),
            tag("meta", name="generator", content=f"flatout {__version__}"),
            tag("title", f"{_name(context.case)} · flatout"),
            tag("link", rel="icon", href="data:,"),
            tag("style", Html(_styles())),
        ),
        tag(
            "body",
            tag("a", "Skip to the report", href="#summary", class_="skip"),
            _header(context.case),
            tag("div", _navigation(filled), tag("main", summary.write(context), sections), class_="layout"),
            _footer(context.case),
            data(context.case.to_json(), "case"),
            block("application/gzip;base64", library.packed, "chart-library") if library else None,
            tag("script", script),
        ),
        lang="en",
    )
    return f"<!doctype html>\n{MARKER}\n{page}\n"


def _section(view: View, context: ReportContext) -> Html | None:
    try:
        if not view.has_data(context):
            return None
        content = view.write(context)
    except (ArithmeticError, AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # A case may be damaged or come from anywhere: a view that cannot be shown must not prevent the others.
        content = missing(f"This view cannot be shown: the case has values that do not fit ({error}).")
    return tag("section", tag("h2", view.title), Html(by_cells(content)), id=view.name, data_view=view.name)


def _header(case: Case) -> Html:
    return tag(
        "header",
        tag("span", "flatout", class_="brand"),
        tag("span", _name(case), class_="program", title=" ".join(case.program.command)),
        tag("span", case.program.started[:16].replace("T", " "), class_="quiet started", title=case.program.started),
        tag(
            "span",
            tag("button", "JSON", type="button", data_do="json", title="Download the whole case as JSON"),
            tag("button", "Print", type="button", data_do="print"),
            tag("button", "Theme", type="button", data_do="theme", title="Light, dark, or the theme of the system"),
            class_="buttons",
        ),
        class_="top",
    )


def _navigation(filled: list[View]) -> Html:
    links = [("summary", "Summary"), *((view.name, view.title) for view in filled)]
    return tag(
        "nav",
        tag("ul", [tag("li", tag("a", title, href=f"#{name}")) for name, title in links]),
        aria_label="Views",
    )


def _footer(case: Case) -> Html:
    return tag(
        "footer",
        tag("p", f"Written by flatout {__version__} from a case of flatout {case.flatout or '(version unknown)'}. "
            "This file is self-contained and loads nothing from the network."),
        class_="quiet",
    )  # fmt: skip


def _name(case: Case) -> str:
    """The program without its path and its interpreter."""
    words = [word for word in case.program.command if word]
    if words and words[0].rpartition("/")[2].startswith("python"):
        words = words[1:]
    if words and case.kind == "trace" and words[0] == "trace":
        words = words[1:]
    if words[:1] == ["-m"]:
        words = words[1:]
    return " ".join([words[0].rpartition("/")[2], *words[1:]])[:120] if words else f"{case.kind} case"


def _policy(script: str, library: str) -> str:
    scripts = " ".join(f"'{name}'" for name in (content_hash(script.encode("utf-8")), library) if name)
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _styles() -> str:
    """The dark theme applies if chosen, and if the system prefers it and none was chosen."""
    dark = _asset("dark.css")
    chosen = f':root[data-theme="dark"] {{\n{dark}}}\n'
    preferred = f'@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{\n{dark}}} }}\n'
    base, *others = (_asset(name) for name in STYLES)
    return "".join((base, chosen, preferred, *others))


def _scripts() -> str:
    body = "\n".join(_asset(name) for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{body}\n}})();\n'


def _asset(name: str) -> str:
    text = (files("flatout.report.html") / "assets" / name).read_text(encoding="utf-8")
    if "</" in text:
        raise ValueError(f"{name} contains </, which would end the element around it")
    return text
