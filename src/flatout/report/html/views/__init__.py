"""The views of the page, in their order. Each decides whether a case has data for it, and writes its section.

A new view is one file here and one line in `VIEWS`. It looks at the content of a case, never at its kind, so that new
kinds of cases are shown without a change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flatout.report.html.context import ReportContext
from flatout.report.html.markup import Html
from flatout.report.html.views import (
    devices,
    environment,
    evidence,
    findings,
    flame,
    functions,
    kernels,
    memory,
    ops,
    pipelines,
    placement,
    run,
    serving,
    steps,
    timeline,
    trials,
)


@dataclass(frozen=True)
class View:
    name: str
    title: str
    has_data: Callable[[ReportContext], bool]
    write: Callable[[ReportContext], Html]


VIEWS = tuple(
    View(name, module.TITLE, module.has_data, module.write)
    for name, module in {
        "findings": findings,
        "run": run,
        "serving": serving,
        "trials": trials,
        "steps": steps,
        "timeline": timeline,
        "ops": ops,
        "flame": flame,
        "input": pipelines,
        "functions": functions,
        "memory": memory,
        "devices": devices,
        "kernels": kernels,
        "placement": placement,
        "environment": environment,
        "evidence": evidence,
    }.items()
)
