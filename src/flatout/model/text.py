"""Text from outside, made safe to print and to keep.

Names, paths, source lines, error messages, environment variables and logs come from somebody's program or machine. Any
of them may hold terminal escapes, control characters, invisible or direction-changing characters, or be a megabyte
long. Everything that flatout shows or keeps of them passes through this module. It imports nothing heavy, because
`flatout check` uses it too.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

LONGEST = 2000
"""No text from outside is ever longer than this, whatever limit is given."""
LONGEST_FACT = 1000
LONGEST_KEY = 80

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c|$)"  # OSC and other strings: titles, links
    r"|\x1b.|\x9b[0-?]*[ -/]*[@-~]",
    re.DOTALL,
)
_PLAIN = re.compile(r"[\x20-\x7e]*")
_ACCENT = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_STACKED_ACCENTS = re.compile(f"({_ACCENT}{{2}}){_ACCENT}+")
"""More than two accents on one letter, which a terminal draws over the lines above."""


def clean(value: object, limit: int = LONGEST) -> str:
    """One line of at most `limit` characters, without escapes, controls, invisible characters or repeated blanks."""
    text = " ".join(clean_code(str(value)[: 4 * LONGEST]).split())
    limit = min(limit, LONGEST)
    return text if len(text) <= limit else text[: max(limit - 1, 0)].rstrip() + "…"


def clean_code(line: str) -> str:
    """A line of source without escapes, controls and invisible characters. Blanks stay."""
    if not _PLAIN.fullmatch(line):
        line = _STACKED_ACCENTS.sub(r"\1", "".join(map(_harmless, _ESCAPES.sub("", line))))
    return line


def clean_all(value: Any) -> Any:
    """`clean` for every string in nested dicts and lists."""
    if isinstance(value, str):
        return clean(value, LONGEST_FACT)
    if isinstance(value, Mapping):
        return {clean(key, LONGEST_KEY): clean_all(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean_all(item) for item in value]
    return value


@functools.lru_cache(maxsize=512)
def _harmless(character: str) -> str:
    category = unicodedata.category(character)
    if character in "\t\n\r\v\f" or category in ("Zl", "Zp", "Zs"):
        return " "
    if category == "Cf":
        return ""  # invisible: direction overrides, zero-width joiners, tags
    return "\N{REPLACEMENT CHARACTER}" if category.startswith("C") else character
