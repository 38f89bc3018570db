"""Which patterns can apply to a text, by the words and calls in it: decided before the text is parsed.

Making the tree of a file takes most of the time of a check, so a file is parsed only if something may be found in it.
Each step leaves out only what cannot apply.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property

from flatout.source.analysis import datasets
from flatout.source.analysis.patterns import Pattern
from flatout.source.analysis.quick_look import line_around

_BETWEEN_WORDS = bytes(
    code if chr(code).isalnum() or chr(code) == "_" or code > 127 else ord(" ") for code in range(256)
)


_TENSORFLOW = frozenset((b"tf", b"tensorflow", b"tf_slim"))


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
        if words.isdisjoint(_TENSORFLOW):
            numbers = {number for number in numbers if not self._patterns[number].of_tensorflow}
        return [
            self._patterns[number]
            for number in sorted(numbers)
            if self._needs[number] <= words and not (self._among[number] and self._among[number].isdisjoint(words))
        ]


class Code:
    """The code of a text, and what several patterns ask of it, found once."""

    def __init__(self, text: str, words: set[bytes]) -> None:
        self._code = code_of(text)
        self._words = words

    def may_have(self, item: Pattern) -> bool:
        code = self._code
        if item.words != item.called and not any(word in code for word in self._present(item.words)):
            return False
        if item.called and not any(_call(name).search(code) for name in self._present(item.called)):
            return False
        if item.written and not _expression(item.written).search(code):
            return False
        if item.in_loop and not self._in_loop(item.in_loop):
            return False
        if item.in_call and not any(word in self._methods for word in item.in_call):
            return False
        if item.may_be_in is not None and not item.may_be_in(code):
            return False
        if item.alone and not may_stand_alone(item.alone, code):
            return False
        return not item.on_dataset or self._has_dataset

    def _in_loop(self, written: Iterable[str]) -> bool:
        anywhere = [one for one in map(_expression, written) if one.search(self._code)]
        return any(one.search(self._loops) for one in anywhere)

    def _present(self, words: frozenset[str]) -> Iterator[str]:
        """Those that the text has at all: to search for others takes as long as to find nothing."""
        return (word for word in words if word.encode() in self._words)

    @cached_property
    def _loops(self) -> str:
        return "\n".join(_regions(_LOOP, self._code))

    @cached_property
    def _methods(self) -> str:
        return "\n".join(_regions(_CALL, self._code))

    @cached_property
    def _has_dataset(self) -> bool:
        return datasets.may_be_in(self._words, self._code)


def may_stand_alone(names: frozenset[str], code: str) -> bool:
    """Whether a call of a method with one of the names may be a statement, by the rest of its line."""
    for found in _methods_called(names).finditer(code):
        begin, _ = line_around(code, found.start(), found.end())
        if begin is None or not _is_inside(code[begin : found.start()]):
            return True
    return False


def _is_inside(before: str) -> bool:
    """Whether what stands before it in its line makes a call a part of something: a value, an argument, a comment."""
    if before.lstrip().startswith("#"):
        return True
    if _QUOTED.search(before):
        return False
    depth = 0
    for number, sign in enumerate(before):
        if sign in ")]}":
            depth -= 1
            if depth < 0:
                return False  # closes what an earlier line has opened
        elif sign in "[{" or (sign == "(" and number and (before[number - 1].isalnum() or before[number - 1] in "_)]")):
            depth += 1
        elif sign == "(":
            return False
    return depth > 0 or _VALUE.match(before) is not None


_QUOTED = re.compile(r"[\"'#;\\]")
_VALUE = re.compile(r"\s*(?:(?:return|yield|raise|assert)\b|[\w.\[\], ]+=(?!=))")


@cache
def _methods_called(names: frozenset[str]) -> re.Pattern[str]:
    return re.compile(rf"\.[\s\\]*(?:{'|'.join(sorted(map(re.escape, names)))})[\s\\]*\(")


@cache
def _expression(written: str) -> re.Pattern[str]:
    return re.compile(written)


@cache
def _call(name: str) -> re.Pattern[str]:
    return re.compile(rf"{re.escape(name)}[\s\\]*\(")


_LOOP = re.compile(r"^([ \t]*)(?:async[ \t]+)?(?:for|while)\b", re.MULTILINE)
_CALL = re.compile(r"^([ \t]*)(?:async[ \t]+)?def[ \t]+(?:__)?call(?:__)?\b", re.MULTILINE)


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
