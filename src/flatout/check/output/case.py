"""The report as a Case, which all commands of flatout share, and as its JSON."""

from __future__ import annotations

from collections.abc import Sequence

from flatout.check.output import View
from flatout.check.output.concise import notes
from flatout.model.case import Case, Finding, Fix, Note, Program, Where
from flatout.model.evidence.outcomes import PatternSeen
from flatout.model.version import __version__
from flatout.source.analysis.patterns import Diagnostic


def as_case(view: View, command: Sequence[str] = ("flatout", "check")) -> Case:
    report = view.report
    return Case(
        "check",
        program=Program(tuple(command), str(view.root)),
        findings=tuple(finding(path, item) for path, item in report.all()),
        notes=(
            *(Note("warning", f"{problem.path}: {problem.text}") for problem in report.problems),
            *(Note("info", text) for text in notes(report)),
        ),
        verdict=f"{report.count} faults in {len(report.files)} of {report.checked} files."
        if report.count
        else f"Nothing found in {report.checked} files.",
        flatout=__version__,
    )


def finding(path: str, item: Diagnostic) -> Finding:
    where = Where(path, item.line, item.function, item.code)
    safe = item.repair is not None and item.repair.safe
    seen = PatternSeen(
        item.full_name,
        pattern=item.full_name,
        column=item.column,
        end_line=item.end_line,
        end_column=item.end_column,
        cell=item.cell,
        fix=None if item.repair is None else "safe" if safe else "unsafe",
        where=where,
        source="source",
    )
    return Finding(
        item.cause,
        item.message,
        where,
        (seen,),
        confidence=item.confidence,
        fixes=(Fix(item.advice, edit=item.repair.kind if item.repair else None, equivalence=item.equivalence),),
        cost_share=item.measured_share,
        of="step" if item.measured_share is None else "run",
        estimate="not measured: seen in source" if item.measured_share is None else "measured in a run of the program",
    )
