"""JUnit XML, which most build servers can show."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from flatout.check.output import View

_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot contain, not even as a reference."""


def render(view: View) -> str:
    report = view.report
    rows = ['<?xml version="1.0" encoding="utf-8"?>']
    tests = max(report.count, 1)
    rows.append(f'<testsuites name="flatout" tests="{tests}" failures="{report.count}" errors="0">')
    if not report.count:
        rows.append('  <testsuite name="flatout" tests="1" failures="0" errors="0">')
        rows.append(f'    <testcase name="{report.checked} files without a fault" classname="flatout"/>')
        rows.append("  </testsuite>")
    for path, found in report.files.items():
        name = view.relative(path)
        rows.append(
            f'  <testsuite name={_attribute(name)} tests={_attribute(len(found))} failures="{len(found)}" errors="0">'
        )
        for item in found:
            cell = f"cell {item.cell}, " if item.cell is not None else ""
            rows.append(
                f"    <testcase name={_attribute(f'{item.full_name} ({cell}line {item.line})')} "
                f'classname={_attribute(name)} file={_attribute(name)} line="{item.line}">'
            )
            rows.append(
                f"      <failure message={_attribute(item.message)}>{_text(item.code)}\n{_text(item.advice)}</failure>"
            )
            rows.append("    </testcase>")
        rows.append("  </testsuite>")
    rows.append("</testsuites>")
    return "\n".join(rows) + "\n"


def _attribute(value: object) -> str:
    return quoteattr(_ILLEGAL.sub("\ufffd", str(value)))


def _text(value: str) -> str:
    return escape(_ILLEGAL.sub("\ufffd", value))
