"""One source file: its tree, the positions of the nodes, what names mean, and the changes to be made in the text."""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import libcst as cst
from libcst.metadata import (
    CodePosition,
    CodeRange,
    MetadataWrapper,
    ParentNodeProvider,
    PositionProvider,
    QualifiedNameProvider,
    QualifiedNameSource,
)

from flatout.source.api_names import canonical_public

Node = TypeVar("Node", bound=cst.CSTNode)
FUNCTIONS = (cst.FunctionDef, cst.Lambda)
LOOPS = (cst.For, cst.While)
_NEWLINE = re.compile(r"\r\n?|\n")


def read(source: str) -> Document | None:
    """None for a text that is not Python, or is nested too deeply."""
    try:
        return Document(source)
    except (cst.ParserSyntaxError, cst.CSTValidationError, RecursionError, ValueError):
        return None


@functools.lru_cache(maxsize=16)
def _analyse(
    source: str,
) -> tuple[cst.Module, Mapping[cst.CSTNode, CodeRange], Mapping[cst.CSTNode, cst.CSTNode], Mapping[cst.CSTNode, Any]]:
    """Cached, as many edits read the same text."""
    wrapper = MetadataWrapper(cst.parse_module(source), unsafe_skip_copy=True)
    return (
        wrapper.module,
        wrapper.resolve(PositionProvider),
        wrapper.resolve(ParentNodeProvider),
        wrapper.resolve(QualifiedNameProvider),
    )


class Document:
    def __init__(self, source: str) -> None:
        self.source = source
        self.tree, self._positions, self._parents, self._meanings = _analyse(source)
        self.newline = self.tree.default_newline
        self.indent = self.tree.default_indent
        self._starts = [0, *(match.end() for match in _NEWLINE.finditer(source))]
        self._left_out = _left_out(source, self.tree) if "\f" in source else {}
        self._changes: list[tuple[int, int, str]] = []
        self.imported: set[str] = set()
        """Imports that were added, each once."""
        self.named: set[str] = set()
        """Names that were given to what is added."""

    def all(self, *kinds: type[Node]) -> Iterator[Node]:
        """Nodes of these kinds in the order in which they end."""
        found = [node for node in self._positions if isinstance(node, kinds)]
        return iter(sorted(found, key=lambda node: self.span(node)[::-1]))

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Offsets of a node's text, without parentheses around it."""
        extent = self._positions[node]
        return self._place(extent.start), self._place(extent.end)

    def _place(self, position: CodePosition) -> int:
        return self._starts[position.line - 1] + self._left_out.get(position.line, 0) + position.column

    def lines(self, node: cst.CSTNode) -> range:
        extent = self._positions[node]
        return range(extent.start.line, extent.end.line + 1)

    def line(self, node: cst.CSTNode) -> int:
        return self._positions[node].start.line

    def text(self, node: cst.CSTNode) -> str:
        start, end = self.span(node)
        return self.source[start:end]

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self._parents.get(node)

    def around(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """All ancestors of a node, innermost first."""
        holder = self.parent(node)
        while holder is not None:
            yield holder
            holder = self.parent(holder)

    def nearest(self, node: cst.CSTNode, *kinds: type[Node]) -> Node | None:
        return next((holder for holder in self.around(node) if isinstance(holder, kinds)), None)

    def offset(self, line: int) -> int:
        """The offset of a line; lines count from 1."""
        return self._starts[line - 1]

    def line_start(self, offset: int) -> int:
        return self._starts[bisect.bisect_right(self._starts, offset) - 1]

    def line_end(self, offset: int) -> int:
        """Offset of the end of a line, before its newline."""
        match = _NEWLINE.search(self.source, offset)
        return match.start() if match else len(self.source)

    def next_line(self, offset: int) -> int:
        match = _NEWLINE.search(self.source, offset)
        return match.end() if match else len(self.source)

    def indentation(self, offset: int) -> str:
        """White space at the beginning of the line of this offset."""
        start = self.line_start(offset)
        match = re.compile(r"[ \t\f]*").match(self.source, start)
        return match.group() if match else ""

    def begins_its_line(self, offset: int) -> bool:
        return not self.source[self.line_start(offset) : offset].strip()

    def dotted(self, node: cst.CSTNode) -> str:
        """What an expression means by the file's imports: `tf.data` → `tensorflow.data`; empty if nothing imported."""
        inner = node.func if isinstance(node, cst.Call) else node
        while isinstance(inner, cst.Attribute):
            inner = inner.value
        if not isinstance(inner, cst.Name):
            return ""  # a method of something computed
        found = self._meanings.get(node, ())
        for name in found() if callable(found) else found:  # libcst computes them on demand
            if name.source is QualifiedNameSource.IMPORT:
                return canonical_public(name.name)
        return ""

    def replace(self, start: int, end: int, text: str) -> None:
        self._changes.append((start, end, text))

    def insert(self, offset: int, text: str) -> None:
        self._changes.append((offset, offset, text))

    def result(self) -> str | None:
        """The text with all changes made; None if there are none, or if two of them overlap."""
        text, after = self.source, len(self.source) + 1
        order = sorted(range(len(self._changes)), key=lambda number: (*self._changes[number][:2], number))
        for start, end, new in (self._changes[number] for number in reversed(order)):
            if end > after:
                return None
            text, after = text[:start] + new + text[end:], start
        return text if text != self.source else None


def _left_out(source: str, tree: cst.Module) -> dict[int, int]:
    """By line the characters at its beginning that the tree does not have, and does not count in columns: form feeds
    in front of code."""
    pairs = zip(_NEWLINE.split(source), _NEWLINE.split(tree.code), strict=True)
    return {number: len(row) - len(known) for number, (row, known) in enumerate(pairs, 1) if len(row) != len(known)}


def free(document: Document, name: str) -> str:
    """A name that does not occur in the file."""
    taken = {node.value for node in document.all(cst.Name)}
    number, wanted = 2, name
    while wanted in taken:
        wanted, number = f"{name}_{number}", number + 1
    return wanted
