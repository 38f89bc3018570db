"""Which patterns can apply to a text, by the words and calls in it: decided before the text is parsed.

Making the tree of a file takes most of the time of a check, so a file is parsed only if something may be found in it.
Each step leaves out only what cannot apply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from flatout.source.analysis.patterns import Pattern

_BETWEEN_WORDS = bytes(
    code if chr(code).isalnum() or chr(code) == "_" or code > 127 else ord(" ") for code in range(256)
)


class Prefilter:
    """A set of patterns by the words that they look for."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._patterns = patterns
        self._of_word: dict[bytes, list[int]] = {}
        for number, item in enumerate(patterns):
            for word in item.words:
                self._of_word.setdefault(word.encode(), []).append(number)
        self._words = frozenset(self._of_word)
        self._needs = [frozenset(word.encode() for word in item.needs) for item in patterns]
        self._among = [frozenset(word.encode() for word in item.among) for item in patterns]

    def by_words(self, words: set[bytes]) -> list[Pattern]:
        """The patterns whose words occur anywhere, comments and strings included."""
        numbers = {number for word in words & self._words for number in self._of_word[word]}
        return [
            self._patterns[number]
            for number in sorted(numbers)
            if self._needs[number] <= words and not (self._among[number] and self._among[number].isdisjoint(words))
        ]


def may_apply(patterns: Sequence[Pattern], text: str) -> bool:
    """Whether the code of a text has the words, calls, loops and methods of any of the patterns.

    One is enough: then the text is parsed, and what else could have been left out takes no time worth saving.
    """
    code = code_of(text)
    if any(not (item.in_loop or item.in_call) and _occurs(item, code) for item in patterns):
        return True
    loops, methods = "", ""
    for item in patterns:
        if not _occurs(item, code):
            continue
        if item.in_loop:
            loops = loops or "\n".join(_regions(_LOOP, code))
        else:
            methods = methods or "\n".join(_regions(_CALL, code))
        if any(word in (loops if item.in_loop else methods) for word in item.in_loop | item.in_call):
            return True
    return False


def _occurs(item: Pattern, code: str) -> bool:
    if not any(word in code for word in item.words):
        return False
    return not item.called or any(_call(name).search(code) for name in item.called)


@cache
def _call(name: str) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(name)}[\s\\]*\(")


_LOOP = re.compile(r"^([ \t]*)(?:async[ \t]+)?(?:for|while)\b", re.MULTILINE)
_CALL = re.compile(r"^([ \t]*)(?:async[ \t]+)?def[ \t]+call\b", re.MULTILINE)


def _regions(header: re.Pattern[str], code: str) -> Iterator[str]:
    """The blocks of all such headers, and what follows, to the next definition that is not inside."""
    done = 0
    for found in header.finditer(code):
        if found.start() < done:
            continue
        end = _definition(len(found[1])).search(code, found.end())
        done = end.start() if end is not None else len(code)
        yield code[found.start() : done]


@cache
def _definition(depth: int) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]{{0,{depth}}}(?:def|class|async|@)\b", re.MULTILINE)


def words_in(text: str) -> set[bytes]:
    """All words of a text, comments included. A hundred times faster than searching for each word."""
    content = text.encode("utf-8", "surrogatepass")
    found = set(content.translate(_BETWEEN_WORDS).split())
    if b"function" in found and b".function" not in content and b"import function" not in content:
        found.discard(b"function")  # only in comments and strings
    return found


def code_of(text: str) -> str:
    """The text without docstrings; all of it where it is not plain where they begin and end."""
    parts = text.split('"""')
    if len(parts) == 1 or len(parts) % 2 == 0 or "'''" in text:
        return text
    outside = parts[::2]
    for part in outside[:-1]:
        line = part[part.rfind("\n") + 1 :]
        if "#" in line or "'" in line or line.endswith("\\"):
            return text
    return '""'.join(outside)
