"""Commands of GitHub Actions, which become annotations of a pull request."""

from __future__ import annotations

from flatout.check.output import View


def render(view: View) -> str:
    rows = []
    for path, item in view.report.all():
        title = _property(f"flatout {item.full_name}")
        position = f"file={_property(view.relative(path))},title={title}"
        if item.cell is None:
            position += f",line={item.line},col={item.column},endLine={item.end_line},endColumn={item.end_column}"
        cell = f"cell {item.cell}, line {item.line}: " if item.cell is not None else ""
        rows.append(f"::warning {position}::{_message(f'{cell}{item.message} {item.advice}')}\n")
    return "".join(rows)


def _message(text: str) -> str:
    text = "".join(letter if letter.isprintable() or letter in "\r\n" else "\ufffd" for letter in text)
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
