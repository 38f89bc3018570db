"""One line per finding: `train.py:12:5: host-sync A value is read back … [*]`."""

from __future__ import annotations

from flatout.check.driver import Report
from flatout.check.output import View
from flatout.model.text import clean
from flatout.source.analysis.patterns import Diagnostic


def render(view: View) -> str:
    rows = [
        f"{location(path, item)}: {item.cause} {clean(item.message)}{cost(item)}{mark(item)}"
        for path, item in view.report.all()
    ]
    return "".join(f"{row}\n" for row in rows) + summary(view)


def location(path: str, item: Diagnostic) -> str:
    cell = f":cell {item.cell}" if item.cell is not None else ""
    return f"{clean(path)}{cell}:{item.line}:{item.column}"


def cost(item: Diagnostic) -> str:
    """What a run has measured."""
    return "" if item.measured_share is None else f" ({100 * item.measured_share:.0f} % of the run)"


def mark(item: Diagnostic) -> str:
    """Whether `--fix` would repair it."""
    return "" if item.repair is None else (" [*]" if item.repair.safe else " [unsafe fix]")


def summary(view: View) -> str:
    report = view.report
    note = "".join(f"note: {clean(text)}\n" for text in notes(report))
    if not report.count:
        return note + _nothing(report)
    files = f"{len(report.files)} file{'s' if len(report.files) > 1 else ''}"
    text = f"Found {report.count} fault{'s' if report.count > 1 else ''} in {files}"
    safe = sum(item.repair is not None and item.repair.safe for _, item in report.all())
    unsafe = sum(item.repair is not None and not item.repair.safe for _, item in report.all())
    if safe:
        text += f"; {safe} fixable with --fix"
    if unsafe:
        text += f"; {unsafe} {'more ' if safe else ''}with --fix --unsafe-fixes"
    return f"{note}{text}.\n"


def notes(report: Report) -> list[str]:
    """What is said once about a project."""
    number = len(report.version_one)
    if not number:
        return [*report.remarks]
    which = f"{report.version_one[0]} is" if number == 1 else f"{number} files ({report.version_one[0]}, …) are"
    return [
        f"{which} written for TensorFlow 1, which TensorFlow 2 runs under tf.compat.v1 only, and slowly: port the "
        "steps to tf.function and the input to tf.data (`flatout explain gone-api`). Nothing else is said about "
        f"{'it' if number == 1 else 'them'}; `--select all` shows all findings.",
        *report.remarks,
    ]


def _nothing(report: Report) -> str:
    if report.problems:
        number = len(report.problems)
        return f"Nothing found; {number} {'file' if number == 1 else 'files'} could not be read.\n"
    nothing = "Nothing found.\n" if not report.left_out else "Nothing found that matters in this run.\n"
    return nothing if report.checked else "No Python files found.\n"
