"""A Case as text for a terminal: one file per view, one table of views here.

Views are plain functions that write on a `Page`. They take all their numbers from the case, so that a kept
case renders again on a machine without TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flatout.model.case import Case
from flatout.model.errors import UnknownView
from flatout.report.formatting import clean, elide
from flatout.report.labels import NO_VERDICT
from flatout.report.terminal import (
    details,
    devices,
    functions,
    input,
    inspected_pipeline,
    memory,
    ops,
    overview,
    patch,
    placement,
    run_screen,
    serving,
    timeline,
    trials,
    tune_screen,
)
from flatout.report.terminal.output import Output
from flatout.report.terminal.page import Page
from flatout.source.notebooks.program import by_cells


@dataclass(frozen=True)
class View:
    write: Callable[[Case, Page, Path | None], None]
    has_data: Callable[[Case], bool]


VIEWS = {
    name: View(module.write, module.has_data)
    for name, module in {
        "overview": overview,
        "details": details,
        "timeline": timeline,
        "ops": ops,
        "memory": memory,
        "input": input,
        "functions": functions,
        "placement": placement,
        "devices": devices,
        "trials": trials,
        "patch": patch,
        "serving": serving,
        "stages": inspected_pipeline,
    }.items()
}


def render(
    case: Case,
    view: str = "overview",
    width: int | None = None,
    color: bool | None = None,
    *,
    directory: Path | None = None,
    unicode: bool | None = None,
) -> str:
    """The view as text.

    `width`, `color` and `unicode` follow standard output where they are not given. `directory` is where the
    case is kept; with it, the text can say where the case and its trace are.
    """
    if view not in VIEWS:
        raise unknown_view(view)
    output = Output.of(width, color, unicode)
    page = output.page(case.program.directory)
    VIEWS[view].write(case, page, directory)
    if view == "details" or (view == "overview" and case.kind not in overview.SCREENS):
        _more(case, page, directory)
    return by_cells(output.text(page))


def unknown_view(name: str) -> UnknownView:
    from flatout.plugins import suggestion

    return UnknownView(f"There is no view named {name!r}.{suggestion(name, VIEWS)} The views are: {', '.join(VIEWS)}.")


def headline(case: Case) -> str:
    """The first sentence of the overview: what `--quiet` prints."""
    if case.kind == "run":
        return by_cells(run_screen.headline(case))
    return by_cells(tune_screen.headline(case) if case.kind == "tune" else clean(case.verdict) or NO_VERDICT)


def _more(case: Case, page: Page, directory: Path | None) -> None:
    """Where the case is, and which views have something to show."""
    page.gap()
    if directory is not None:
        page.labelled("case", elide(clean(directory), page.width - 6, middle=True), indent=0, room=6)
    filled = [name for name, view in VIEWS.items() if name not in ("overview", "details") and view.has_data(case)]
    if filled:
        page.labelled("more", "flatout show --view NAME  where NAME is ", ", ".join(filled), indent=0, room=6)
