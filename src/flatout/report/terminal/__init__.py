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
from flatout.report.terminal import (
    devices,
    functions,
    input,
    inspected_pipeline,
    memory,
    ops,
    overview,
    placement,
    serving,
    timeline,
    trials,
)
from flatout.report.terminal.output import Output
from flatout.report.terminal.page import Page


@dataclass(frozen=True)
class View:
    write: Callable[[Case, Page, Path | None], None]
    has_data: Callable[[Case], bool]


VIEWS = {
    name: View(module.write, module.has_data)
    for name, module in {
        "overview": overview,
        "timeline": timeline,
        "ops": ops,
        "memory": memory,
        "input": input,
        "functions": functions,
        "placement": placement,
        "devices": devices,
        "trials": trials,
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
        raise UnknownView(f"There is no view named {view!r}. The views are: {', '.join(VIEWS)}.")
    output = Output.of(width, color, unicode)
    page = output.page(case.program.directory)
    VIEWS[view].write(case, page, directory)
    if view == "overview":
        _more(case, page, directory)
    return output.text(page)


def _more(case: Case, page: Page, directory: Path | None) -> None:
    """Where the case is, and which views have something to show."""
    page.gap()
    if directory is not None:
        page.labelled("case", elide(clean(directory), page.width - 6, middle=True), indent=0, room=6)
    filled = [name for name, view in VIEWS.items() if name != "overview" and view.has_data(case)]
    if filled:
        page.labelled("more", "flatout show --view NAME  where NAME is ", ", ".join(filled), indent=0, room=6)
