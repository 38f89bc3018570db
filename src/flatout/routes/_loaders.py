"""Loaders are written as text: what their writers share."""

from __future__ import annotations

import textwrap


def only_if(wanted: object, lines: str) -> str:
    """Lines inside a function, or none."""
    return textwrap.indent(textwrap.dedent(lines).strip("\n"), "    ") + "\n" if wanted else ""
