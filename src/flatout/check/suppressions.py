"""Comments that suppress findings: `# flatout: ignore`, `# flatout: ignore[cause, other]`, `# flatout: ignore-file`."""

from __future__ import annotations

import io
import re
import tokenize

from flatout.source.analysis.patterns import Diagnostic

_COMMENT = re.compile(r"#\s*flatout:\s*(?P<what>ignore-file|ignore)\b(?:\s*\[(?P<names>[^\]]*)\])?", re.IGNORECASE)
EVERYTHING = frozenset({"*"})


class Suppressions:
    """A comment on a line of its own applies to the next line of code; after code, to its own line."""

    def __init__(self, text: str) -> None:
        self._lines: dict[int, frozenset[str]] = {}
        self._file: frozenset[str] = frozenset()
        if "flatout:" in text:
            self._read(text)

    def _read(self, text: str) -> None:
        waiting: frozenset[str] = frozenset()
        try:
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                if token.type == tokenize.COMMENT:
                    found = _COMMENT.search(token.string)
                    if found is None:
                        continue
                    names = _names(found["names"])
                    if found["what"].lower() == "ignore-file":
                        self._file |= names
                    elif token.line[: token.start[1]].strip():
                        self._add(token.start[0], names)
                    else:
                        waiting |= names
                elif token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT) and waiting:
                    self._add(token.start[0], waiting)
                    waiting = frozenset()
        except (tokenize.TokenError, SyntaxError):
            return  # the parser reports what is wrong with the file

    def _add(self, line: int, names: frozenset[str]) -> None:
        self._lines[line] = self._lines.get(line, frozenset()) | names

    def covers(self, item: Diagnostic) -> bool:
        if _match(self._file, item):
            return True
        # The comment may be on the first or on the last line of what is reported.
        return any(_match(self._lines.get(line, frozenset()), item) for line in {item.line, item.end_line})


def _names(text: str | None) -> frozenset[str]:
    found = frozenset(name.strip() for name in (text or "").split(",") if name.strip())
    return found or EVERYTHING


def _match(names: frozenset[str], item: Diagnostic) -> bool:
    return bool(names) and not names.isdisjoint({"*", "all", item.cause, item.full_name})
