"""A loader is the text that users get: routes run that same text, so that what is measured is what is handed over."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from flatout.optimize.route import Runner


def opened(source: str, directory: Path) -> Runner:
    space: dict[str, Any] = {}
    exec(compile(source, "the loader", "exec"), space)
    runner: Runner = space["load"](directory)
    return runner


def only_if(wanted: object, lines: str) -> str:
    """Lines inside a function, or none."""
    return textwrap.indent(textwrap.dedent(lines).strip("\n"), "    ") + "\n" if wanted else ""
