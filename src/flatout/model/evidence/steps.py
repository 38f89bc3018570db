"""What Python did, step after step."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from flatout.model.codec import LATER
from flatout.model.evidence.base import Evidence
from flatout.model.location import Stack
from flatout.model.record import record
from flatout.model.vocabulary import EagerKind, StreamKind


@record(frozen=True)
class Stream(Evidence, kind="stream", value="of"):
    """Something that happened again and again, whether it is the step or not."""

    of: StreamKind
    name: str | None = None
    count: int = 0
    stack: Stack = ()


@record(frozen=True)
class StepStack(Evidence, kind="step-stack", value="step"):
    """How the steps were found, and the stack of the user's code from which a step is made.

    The facts of the model are there where Keras runs the steps.
    """

    OMIT_NONE: ClassVar[bool] = True

    step: StreamKind
    stack: Stack = ()
    id: int | None = None
    of: StreamKind | None = None
    name: str | None = None
    run_eagerly: bool | None = None
    steps_per_execution: int | None = None
    jit_compile: bool | str | None = None
    policy: str | None = None


@record(frozen=True)
class EagerTape(Evidence, kind="eager-tape", value="per_step", unit="per step"):
    """A gradient tape outside of a graph."""

    per_step: float
    stack: Stack = ()


@record(frozen=True)
class EpochStart(Evidence, kind="epoch-start", value="ms", unit="ms/step"):
    """What the first step of each epoch costs beyond an ordinary one, spread over all steps."""

    ms: float
    epochs: int = field(default=0, metadata=LATER)
    """Beginnings that were seen, in so many `steps`; 0 where they were not counted."""
    steps: int = field(default=0, metadata=LATER)


@record(frozen=True)
class HostSync(Evidence, kind="host-sync", value="ms", unit="ms/step"):
    """A line that pulls values from TensorFlow into Python."""

    ms: float
    per_step: float
    calls: int
    bytes_per_step: float
    how: str = ""
    usual: float | None = field(default=None, metadata=LATER)
    """Pulls of a usual step: those before and after the steps, or in few of them, do not count. None if unknown."""


@record(frozen=True)
class Conversion(Evidence, kind="conversion", value="ms", unit="ms/step"):
    """A line that makes tensors of arrays."""

    ms: float
    per_step: float
    calls: int
    bytes_per_step: float
    same_again: float
    """Share of the bytes that had been converted before."""
    different: int = 0


@record(frozen=True)
class EagerLine(Evidence, kind="eager-line", value="ms", unit="ms/step"):
    """A line at which the program calls a model, or copies weights, eagerly."""

    ms: float
    of: EagerKind
    calls: int
    per_step: float
    function: str = ""
    first: int = 0
    """The line of the `def` around it."""
    outside: bool = field(default=False, metadata=LATER)
    """Whether all of its calls came before the first step, after the last, or between them."""


@record(frozen=True)
class Feed(Evidence, kind="feed", value="bytes_per_step", unit="bytes/step"):
    """A Session.run with a feed_dict."""

    bytes_per_step: float
    calls: int
    run_ms: float
    graph_ms: float
    converted: float = 0.0
    """Values of each call that were no tensors yet."""
    positions: tuple[int, ...] = ()
    """Which entries of the feed_dict are the same in every call."""


@record(frozen=True)
class GraphGrowth(Evidence, kind="graph-growth", value="ops_each_time", unit="ops each time"):
    """Ops that a program keeps adding to the graph of its session."""

    ops_each_time: float
    runs: int
    grown: int
    added: int


@record(frozen=True)
class Tracing(Evidence, kind="tracing", value="ms", unit="ms/step"):
    """What tracing costs a step after the warm-up."""

    ms: float
    steps_that_trace: int
    steps: int


@record(frozen=True)
class FunctionsMade(Evidence, kind="functions-made", value="made", unit="functions"):
    """A line that makes tf.functions again and again."""

    made: int
    per_step: float
    trace_ms: float
    name: str
    traces: int


@record(frozen=True)
class LineTime(Evidence, kind="line-time", value="share", unit="share"):
    """Share of the samples that found the program on a line."""

    share: float
    samples: int = 0
    of: int = 0
    inside: tuple[str, ...] = ()
    """The functions of libraries that were called there, the most frequent first."""
    stack: Stack = ()


@record(frozen=True)
class ThreadWait(Evidence, kind="thread-wait", value="share", unit="share"):
    """Share of the samples in which a line waited for another thread."""

    share: float
