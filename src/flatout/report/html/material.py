"""What a view is given: the case, and what lies beside it, read when first asked for.

A case alone is enough for a report. With its directory there is more to show: the events of the trace, the sampled
stacks, which steps were traced again. Nothing here fails because something beside the case is missing or damaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from flatout.model.case import Case, Where
from flatout.report.html.beside.marks import Marks, read_marks
from flatout.report.html.beside.roofline import Roofline, read_rooflines
from flatout.report.html.beside.source import Frame, frame_around
from flatout.report.html.beside.stacks import Tree, ops_by_scope, python_stacks
from flatout.report.html.beside.timeline import Timeline, read_timeline
from flatout.report.html.beside.traces import read_traces
from flatout.report.terminal.text import place
from flatout.trace.model import Trace


@dataclass(frozen=True)
class Material:
    case: Case
    directory: Path | None = None

    @cached_property
    def traces(self) -> tuple[tuple[Trace, int], ...]:
        return read_traces(self.case, self.directory)

    @cached_property
    def timeline(self) -> Timeline | None:
        return read_timeline(self.traces)

    @cached_property
    def rooflines(self) -> tuple[Roofline, ...]:
        return read_rooflines(self.traces)

    @cached_property
    def recording(self) -> Path | None:
        """Where the recording of the observed run lies: the log directory is in it, for a tune one storey down."""
        if self.directory is None or not self.case.logdir:
            return self.directory
        found = (self.directory / self.case.logdir).parent.resolve()
        return found if found.is_relative_to(self.directory.resolve()) else self.directory

    @cached_property
    def marks(self) -> Marks:
        return read_marks(self.case, self.recording)

    @cached_property
    def flames(self) -> tuple[Tree, ...]:
        found = (python_stacks(self.recording), ops_by_scope(self.case))
        return tuple(tree for tree in found if tree is not None)

    def frame(self, where: Where | None) -> Frame | None:
        return frame_around(where)

    def place(self, where: Where | None, width: int = 60) -> str:
        """file:line, as seen from the directory in which the program ran."""
        return place(where, width, self.case.program.directory)
