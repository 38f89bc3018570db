"""The cells that were run in a session: as a notebook that `tune` can run, and as places to name in findings."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Any

from flatout.model.case import Where
from flatout.report.html.fragment import plain

OWN = re.compile(r"\s*(%%flatout\b|%(re)?load_ext\s+flatout\b|%flatout\b)")
"""Cells and lines that are flatout's own."""


def cells_of(shell: Any, failed: Collection[int] = ()) -> list[str]:
    """What was run so far, in its order, as it was typed, without what failed; the cell that runs now is the last."""
    cells = enumerate(shell.history_manager.input_hist_raw)
    return [str(text) for number, text in cells if number and number not in failed]


def notebook(cells: Sequence[str], last: str) -> str:
    """The cells before this one and this one as a notebook. What was flatout's own is left out."""
    kept = [body for text in cells if (body := _body(text)).strip()]
    sources = [*kept, last]
    made: list[dict[str, Any]] = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": text}
        for text in sources
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def _body(text: str) -> str:
    """A cell under `%%flatout` is itself part of the program; that it was observed is not. One that was tuned was not
    run in the notebook."""
    first, _, rest = text.lstrip().partition("\n")
    if first.startswith("%%flatout"):
        return "" if first.split()[1:2] == ["tune"] else rest
    return "\n".join(line for line in text.split("\n") if not OWN.match(line))


class Places:
    """Names lines by the cell that they were typed in: `In [3] line 4`."""

    def __init__(self, shell: Any, body: str) -> None:
        self._names: dict[str, str] = {}
        for number, text in enumerate(shell.history_manager.input_hist_raw):
            self._add(shell, str(text), number, f"In [{number}]")
        self._add(shell, body, shell.execution_count, "this cell")

    def _add(self, shell: Any, text: str, number: int, name: str) -> None:
        try:
            transformed = shell.transform_cell(text)
            file = shell.compile.get_code_name(text, transformed, number)
        except Exception:  # a cell that is no Python, or an IPython that names its cells in another way
            return
        self._names[str(file)] = name

    def __call__(self, where: Where) -> str:
        name = self._names.get(where.file or "")
        return f"{name} line {where.line}" if name else plain(where)
