"""The environment: problems first, then all facts."""

from __future__ import annotations

from typing import Any

from flatout.environment.table import headline
from flatout.model.case import Case
from flatout.model.evidence.outcomes import EnvironmentReading
from flatout.report.formatting import clean, quantity
from flatout.report.html.components import chip, folded, missing
from flatout.report.html.context import ReportContext
from flatout.report.html.markup import Child, Html, join, tag
from flatout.report.html.tables import Column, table

TITLE = "Environment"
MOST = 400
BAD = ("fault", "warning")


def has_data(context: ReportContext) -> bool:
    return bool(context.case.environment) or bool(context.case.program.command)


def write(context: ReportContext) -> Html:
    case = context.case
    readings = _readings(case)
    wrong = [item for item in readings if item.get("status") in BAD]
    fine = [item for item in readings if item.get("status") not in BAD]
    return join(
        tag("p", headline(case.environment), class_="lead") if "packages" in case.environment else None,
        tag("ul", [_reading(item) for item in wrong], class_="readings")
        if wrong
        else (missing("No warnings: all checks passed.") if readings else None),
        folded(f"{len(fine)} checks passed", tag("ul", [_reading(item) for item in fine], class_="readings"))
        if fine
        else None,
        _program(case),
        folded("All facts", _facts(case)) if case.environment else None,
    )


def _readings(case: Case) -> list[dict[str, Any]]:
    """The readings of the audit, from the environment of a run or from the evidence of `flatout env`."""
    kept = case.environment.get("readings")
    found = [item for item in kept if isinstance(item, dict)] if isinstance(kept, list) else []
    return found or [_plain(item) for item in case.evidence_of(EnvironmentReading)]


def _plain(item: EnvironmentReading) -> dict[str, Any]:
    return {**item.write_json()["data"], "value": item.reading, "meaning": item.note}


def _reading(item: dict[str, Any]) -> Html:
    status = str(item.get("status") or "info")
    kind = {"fault": "lost", "warning": "warning", "ok": "good"}.get(status, "")
    todo = str(item.get("todo") or "")
    return tag(
        "li",
        chip(status, kind),
        tag("strong", f" {item.get('name') or ''} "),
        str(item.get("value") or ""),
        tag("p", str(item["meaning"])) if item.get("meaning") and status != "ok" else None,
        tag("p", tag("b", f"→ {todo}")) if todo else None,
    )


def _program(case: Case) -> Child:
    program = case.program
    if not program.command:
        return None
    rows: list[tuple[str, str]] = [
        ("command", " ".join(program.command)),
        ("directory", program.directory),
        ("started", program.started),
        ("seconds", f"{program.seconds:.1f}" if program.seconds else ""),
        ("exit code", "" if program.exit_code is None else str(program.exit_code)),
        ("flatout", case.flatout),
    ]
    return tag("dl", [(tag("dt", name), tag("dd", tag("code", value))) for name, value in rows if value], class_="rows")


def _facts(case: Case) -> Html:
    rows = [[name, value] for name, value in _flat(case.environment)[:MOST]]
    return table([Column("what"), Column("value", wide=True)], rows, "Facts of the environment", find="facts")


def _flat(data: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for key, value in list(data.items())[:200]:
        name = f"{prefix}{clean(key, 60)}"
        if isinstance(value, dict) and value and prefix.count(".") < 4:
            rows += _flat(value, f"{name}.")
        elif name != "readings":
            rows.append((name, _value(value)))
    return rows


def _value(value: Any) -> str:
    if isinstance(value, list):
        return clean(", ".join(str(item) for item in value[:60]))
    return "–" if value is None else quantity(value, "") if isinstance(value, float) else clean(value)
