"""What a view is given: the case and its attachments, which are read when first used.

A case alone is enough for a report. With its directory there is more to show: the events of the trace, the sampled
stacks, the steps in which a function was traced. A missing or damaged attachment is never an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from flatout.model.case import Case, Where
from flatout.report.formatting import location
from flatout.report.html.attachments.roofline import Roofline, read_rooflines
from flatout.report.html.attachments.source_frame import Frame, frame_around
from flatout.report.html.attachments.stacks import Tree, ops_by_scope, python_stacks
from flatout.report.html.attachments.step_marks import Marks, read_marks
from flatout.report.html.attachments.timeline import Timeline, read_timeline
from flatout.report.html.attachments.traces import read_traces
from flatout.trace.model import Trace


@dataclass(frozen=True)
class ReportContext:
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
        """The directory of the recording, which contains the log directory; for a tune it is a subdirectory."""
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

    def location(self, where: Where | None, width: int = 60) -> str:
        """`file:line`, relative to the directory in which the program ran."""
        return location(where, width, self.case.program.directory)
