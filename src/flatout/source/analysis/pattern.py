"""How a cause looks in source: the mark on a detector, what it sees, and the edit that would cure it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flatout.model.case import Equivalence

if TYPE_CHECKING:
    from flatout.source.analysis.scopes import Site


@dataclass(frozen=True)
class Repair:
    """An edit by its kind (a file of `check/repairs`) and what it needs to know. Unsafe ones may change what is
    computed, or fail where the code leans on what they take away."""

    kind: str
    safe: bool = False
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """What a detector gives out: a fault at a node."""

    node: ast.AST
    message: str
    advice: str
    equivalence: Equivalence = "exact"
    repair: Repair | None = None
    unless_traced: str = ""
    """Name of a function; the fault is none if another file traces it."""
    place: ast.AST | None = None
    """Where to report it, if not at the node."""


Detector = Callable[[Any, "Site"], Iterable[Seen]]


@dataclass(frozen=True)
class Pattern:
    name: str
    look: Detector
    calls: frozenset[str]
    """Looks at calls of functions or methods with these names."""
    nodes: tuple[type[ast.AST], ...]
    """Looks at nodes of these kinds."""
    words: frozenset[str]
    """A function without any of these words cannot have the fault."""
    default: bool
    in_tests: bool
    among: frozenset[str] = frozenset()
    """Nor can a file without any of these, which may stand anywhere in it."""
    needs: frozenset[str] = frozenset()
    """Nor can a file that lacks one of these."""
    default_below: tuple[int, int] = (0, 0)
    """For code that must run with a TensorFlow older than this one, it is a default."""
    cause: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.cause}/{self.name}"


def pattern(
    name: str,
    *,
    calls: Iterable[str] = (),
    nodes: Iterable[type[ast.AST]] = (),
    words: Iterable[str] = (),
    default: bool = True,
    in_tests: bool = False,
    among: Iterable[str] = (),
    needs: Iterable[str] = (),
    default_below: tuple[int, int] = (0, 0),
) -> Callable[[Detector], Pattern]:
    """Makes a pattern of a function that looks at a node. Its cause names it in `Cause(patterns=…)`.

    `default=False` is for what is true too seldom, or matters too seldom, to be told unasked. Tests are left alone
    unless `in_tests`: how fast they are is nobody's concern.
    """

    def mark(look: Detector) -> Pattern:
        called = frozenset(calls)
        found = Pattern(
            name,
            look,
            called,
            tuple(nodes),
            frozenset(words) or called,
            default,
            in_tests,
            frozenset(among),
            frozenset(needs),
            default_below,
        )
        assert found.words, f"{name} names no word to look for"
        return found

    return mark


@dataclass(frozen=True)
class Sighting:
    """A fault at a place of a file; lines and columns count from 1, columns in characters."""

    cause: str
    pattern: str
    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    advice: str
    equivalence: Equivalence = "exact"
    repair: Repair | None = None
    """With `data["span"]`: line, column, end line and end column of the node it is about."""
    function: str | None = None
    code: str = ""
    unless_traced: str = ""
    cell: int | None = None
    """Of a notebook, counted from 1; lines are then those of the cell."""

    @property
    def full_name(self) -> str:
        return f"{self.cause}/{self.pattern}"
