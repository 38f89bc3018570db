"""Comments that suppress findings: `# flatout: ignore`, `# flatout: ignore[cause, other]`, `# flatout: ignore-file`."""

from __future__ import annotations

import io
import re
import tokenize
from functools import cache

from flatout.causes import catalogue, patterns
from flatout.source.analysis.patterns import Diagnostic

_COMMENT = re.compile(
    r"#\s*flatout:\s*(?P<what>ignore-file|ignore)\b(?:\s*\[(?P<names>[^\]]*)\]|(?!\s*[\[(:=]|-\w))", re.IGNORECASE
)
_NAME_BEHIND = re.compile(r"\s+(?P<name>\w[\w/-]*)(?P<rest>.*)", re.DOTALL)
_MEANT = re.compile(r"#\s*flatout:\s*ignore\b", re.IGNORECASE)
EVERYTHING = frozenset({"*"})
_BETWEEN = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


class Suppressions:
    """A comment on a line of its own applies to the next statement, or inside of one to its next line; above decorators
    to the definition as well. Behind code it applies to its line, and at the first or last line of a statement to the
    whole of it. Of a statement with a body only the head counts."""

    def __init__(self, text: str) -> None:
        self._lines: dict[int, frozenset[str]] = {}
        self._file: frozenset[str] = frozenset()
        self.mistakes: list[tuple[int, str]] = []
        """Lines of comments that are written wrongly, and what about them has no effect."""
        if "flatout:" in text:
            self._read(text)

    def _read(self, text: str) -> None:
        waiting = inside = frozenset[str]()
        line: list[tokenize.TokenInfo] = []
        alone: list[tuple[int, frozenset[str]]] = []
        try:
            for token in tokenize.generate_tokens(io.StringIO(text, newline=None).readline):
                if token.type == tokenize.COMMENT:
                    names = self._comment(token)
                    waiting, inside = (waiting, inside | names) if line else (waiting | names, inside)
                elif token.type == tokenize.NEWLINE and line:
                    self._end_of(line, waiting)
                    for number, names in alone:
                        self._add(number, names)
                    waiting = waiting if line[0].string == "@" else frozenset()
                    line, alone = [], []
                elif token.type not in _BETWEEN:
                    if inside:
                        alone.append((token.start[0], inside))
                        inside = frozenset()
                    line.append(token)
        except (tokenize.TokenError, SyntaxError):
            return  # the parser reports what is wrong with the file

    def _comment(self, token: tokenize.TokenInfo) -> frozenset[str]:
        """The names of a comment on a line of its own, which wait for the next statement."""
        found = _COMMENT.search(token.string)
        if found is None or (found["names"] is None and _is_name(token.string[found.end() :])):
            if _MEANT.search(token.string):
                self.mistakes.append((token.start[0], _FORMS))
            return frozenset()
        names = _names(found["names"])
        for name in sorted(names - EVERYTHING - _known()):
            self.mistakes.append((token.start[0], f"there is no cause or pattern named {name!r} to ignore"))
        if found["what"].lower() == "ignore-file":
            self._file |= names
        elif token.line[: token.start[1]].strip():
            self._add(token.start[0], names)
        else:
            return names
        return frozenset()

    def _end_of(self, line: list[tokenize.TokenInfo], above: frozenset[str]) -> None:
        """A line of code ends, which may go over several lines of the file."""
        first, last = line[0].start[0], line[-1].end[0]
        whole = above.union(*(self._lines.get(number, ()) for number in (first, last)))
        for number in range(first, last + 1):
            self._add(number, whole)

    def _add(self, line: int, names: frozenset[str]) -> None:
        if names:
            self._lines[line] = self._lines.get(line, frozenset()) | names

    def covers(self, item: Diagnostic) -> bool:
        if _match(self._file, item):
            return True
        # The comment may be on the first or on the last line of what is reported.
        return any(_match(self._lines.get(line, frozenset()), item) for line in {item.line, item.end_line})


_FORMS = "this comment ignores nothing: it may be ignore, ignore[NAME, NAME], ignore-file or ignore-file[NAME]"


def _is_name(behind: str) -> bool:
    """Whether a name without brackets follows `ignore`, and no words that say why."""
    found = _NAME_BEHIND.match(behind)
    if found is None:
        return False
    alone = not re.search(r"\w", found["rest"])
    return found["name"] in _known() - {"all"} or (alone and "-" in found["name"])


@cache
def _known() -> frozenset[str]:
    return frozenset({"all", *catalogue(), *(item.full_name for item in patterns())})


def _names(text: str | None) -> frozenset[str]:
    found = frozenset(name.strip() for name in (text or "").split(",") if name.strip())
    return found or EVERYTHING


def _match(names: frozenset[str], item: Diagnostic) -> bool:
    return bool(names) and not names.isdisjoint({"*", "all", item.cause, item.full_name})
