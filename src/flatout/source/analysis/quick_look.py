"""What plain text tells about names, without a syntax tree: to leave files out, so what is unclear may be."""

from __future__ import annotations

import re
from collections.abc import Iterator

_BINDS_OTHERWISE = re.compile(r"\bas\b|:=")
LONGEST = 1000
"""Characters of a line to each side: more would make generated code take hours."""
_GOES_ON = ("(", "[", "{", "\\", ",", "=")
_DEF = re.compile(r"\bdef\b")
_FIRST_IN_LIST = re.compile(r"(?:[\w\s*:,.=\[\]]*,)?\s*\*{0,2}")


def may_be_given(name: str, code: str, value: re.Pattern[str]) -> bool:
    """Whether a line may give a name a value that the expression matches."""
    for before, after in _uses(name, code):
        equals = after.find("=")
        if equals >= 0:
            given = after[equals + 1 :].strip()
            if not given or given.endswith(_GOES_ON) or value.search(given):
                return True
        elif _BINDS_OTHERWISE.search(before) or _BINDS_OTHERWISE.search(after):
            return True
    return False


def may_be_argument(name: str, code: str) -> bool:
    """Whether a name may be an argument of a function that is defined here, in a line with `def` or below it."""
    return any(
        _DEF.search(before) or (_FIRST_IN_LIST.fullmatch(before) and _goes_on_in_list(after.partition("#")[0].strip()))
        for before, after in _uses(name, code)
    )


def _goes_on_in_list(after: str) -> bool:
    if after.startswith("="):
        return after.endswith((",", ":")) or after.count(")") > after.count("(")
    return not after or after[0] in ",:)"


def _uses(name: str, code: str) -> Iterator[tuple[str, str]]:
    """What stands before and after a name in each line that has it. A line that is too long to look at may be both."""
    at = code.find(name)
    while at >= 0:
        end = at + len(name)
        if not (_is_of_word(code[at - 1 : at]) or _is_of_word(code[end : end + 1])):
            begin, stop = line_around(code, at, end)
            if begin is None or stop is None:
                yield "def ", "="
            elif "#" not in code[begin:at]:
                yield code[begin:at], code[end:stop]
        at = code.find(name, end)


def line_around(code: str, at: int, end: int) -> tuple[int | None, int | None]:
    """Where the line begins and ends; None where that is far away, as in generated code."""
    begin = code.rfind("\n", max(at - LONGEST, 0), at) + 1
    stop = code.find("\n", end, end + LONGEST)
    if not begin and at > LONGEST:
        return None, None
    return begin, stop if stop >= 0 else len(code) if end + LONGEST >= len(code) else None


def _is_of_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"
