"""How a cause shows in source: the decorator that marks a detector, and what a detector reports."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from flatout.model.case import Equivalence
from flatout.source.repairs import Repair

if TYPE_CHECKING:
    from flatout.source.analysis.scopes import Module, Site


Confidence = Literal["high", "medium", "low"]
"""How sure it is that a finding matters to the reader.

high: the fault is there, in code that runs for each step or element. medium: the fault is there, and how often it runs
is likely from names and calls. low: the fault is there, but it may not matter: code that is shown, tried or tested, or
that is meant to be so. By default low ones are not shown.
"""
LEVELS: tuple[Confidence, ...] = ("low", "medium", "high")


@dataclass(frozen=True)
class Match:
    """A fault that a detector found at a node."""

    node: ast.AST
    message: str
    advice: str
    equivalence: Equivalence = "exact"
    repair: Repair | None = None
    unless_traced: str = ""
    """Name of a function: it is no fault if another file traces that function."""
    report_at: ast.AST | None = None
    """The node to report, if not the one that the repair changes."""
    confidence: Confidence = "high"


Detector = Callable[[Any, "Site"], Iterable[Match]]


@dataclass(frozen=True)
class Pattern:
    name: str
    detect: Detector
    calls: frozenset[str]
    """The detector gets calls of functions or methods with these names."""
    nodes: tuple[type[ast.AST], ...]
    """The detector gets nodes of these kinds."""
    words: frozenset[str]
    """A function that contains none of these words is skipped."""
    default: bool
    in_tests: bool
    among: frozenset[str] = frozenset()
    """A file that contains none of these words is skipped."""
    needs: frozenset[str] = frozenset()
    """A file that lacks one of these words is skipped."""
    called: frozenset[str] = frozenset()
    """A file that calls nothing of these names is skipped."""
    in_loop: tuple[str, ...] = ()
    """Regular expressions: a file in which no `for` or `while` statement contains one of them is skipped."""
    in_call: frozenset[str] = frozenset()
    """A file in which no method named `call` contains one of these words is skipped."""
    written: str = ""
    """A regular expression: a file whose code does not contain it is skipped."""
    may_be_in: Callable[[str], bool] | None = None
    """A file is skipped for whose code this is false: a look at the text that is faster than to parse it."""
    alone: frozenset[str] = frozenset()
    """A file in which no call of a method of these names is a statement of its own is skipped."""
    of_tensorflow: bool = False
    """It looks for names of TensorFlow: a file that has those of Keras alone is skipped."""
    on_dataset: bool = False
    """It looks for a chain that is certainly one of tf.data: a file that can have none is skipped."""
    most: Confidence = "high"
    """No finding is of more confidence: where only better ones are shown, it is left out."""
    seldom: bool = False
    """Readers called more than a quarter of its findings in public code of no consequence. It is shown where it is
    asked for by name, with all confidences, and beside a run of the program."""
    often_in: Callable[[Module], bool] | None = None
    """In files for which this is false, it matters as seldom as if it were marked so."""
    default_below: tuple[int, int] = (0, 0)
    """On by default where the code must run with a TensorFlow older than this version; else of low confidence."""
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
    called: Iterable[str] = (),
    in_loop: Iterable[str] = (),
    in_call: Iterable[str] = (),
    written: str = "",
    may_be_in: Callable[[str], bool] | None = None,
    alone: Iterable[str] = (),
    of_tensorflow: bool = False,
    on_dataset: bool = False,
    most: Confidence = "high",
    seldom: bool = False,
    often_in: Callable[[Module], bool] | None = None,
    default_below: tuple[int, int] = (0, 0),
) -> Callable[[Detector], Pattern]:
    """Makes a pattern of a function that looks at a node. Its cause names it in `Cause(patterns=…)`.

    `default=False` is for patterns that are right, or matter, too seldom to be on by default. Files of tests are
    skipped unless `in_tests`: their speed rarely matters. `called` is by default what the detector gets.
    """

    def mark(detect: Detector) -> Pattern:
        names = frozenset(calls)
        kinds = tuple(nodes)
        found = Pattern(
            name,
            detect,
            names,
            kinds,
            frozenset(words) or names,
            default,
            in_tests,
            frozenset(among),
            frozenset(needs),
            frozenset(called) or (names if not kinds else frozenset()),
            tuple(in_loop),
            frozenset(in_call),
            written,
            may_be_in,
            frozenset(alone),
            of_tensorflow,
            on_dataset,
            most,
            seldom,
            often_in,
            default_below,
        )
        assert found.words, f"{name} has no words to search for"
        return found

    return mark


@dataclass(frozen=True)
class Diagnostic:
    """A fault at a position in a file. Lines and columns count from 1, columns in characters."""

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
    repair_span: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Line, column, end line and end column of the node that the repair changes."""
    function: str | None = None
    code: str = ""
    unless_traced: str = ""
    cell: int | None = None
    """The cell of a notebook, counted from 1. Lines are then those of the cell."""
    confidence: Confidence = "high"
    measured_share: float | None = None
    """Share of a run of the program that it was measured to cost; None where no run tells."""

    @property
    def full_name(self) -> str:
        return f"{self.cause}/{self.pattern}"
