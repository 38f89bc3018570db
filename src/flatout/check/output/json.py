"""The Case as JSON, as every command of flatout writes it."""

from __future__ import annotations

from json import dumps

from flatout.check.output import View
from flatout.check.output.case import as_case


def render(view: View) -> str:
    return dumps(as_case(view).to_json(), ensure_ascii=True, indent=2) + "\n"
