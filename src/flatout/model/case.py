"""The Case: Evidence → Finding → Fix → Trial.

Every stage takes a Case and returns a richer one; every view takes a Case and returns text. All classes are
frozen, hold plain values only, and round-trip through JSON (`model.codec`), so that a saved case renders again years
later on a machine without TensorFlow. What was observed is in `model.observed` and `model.evidence`, what it means in
`model.judged`; the names of both can be imported from here.

Units: times are milliseconds, sizes bytes, shares 0–1; a speedup above 1 is faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, TypeVar

from flatout.model import codec, notebook_view
from flatout.model.codec import LATER, Json, to_plain
from flatout.model.evidence.base import Evidence, Measurement, OtherEvidence
from flatout.model.judged import (
    Conclusion,
    Finding,
    Fix,
    Interval,
    Latency,
    Proof,
    Serving,
    Trial,
    WholeRun,
)
from flatout.model.location import Frame, Where
from flatout.model.observed import (
    Copy,
    Device,
    DeviceDetail,
    Distribution,
    Function,
    Host,
    Kernel,
    Memory,
    MemoryUse,
    Op,
    Pipeline,
    PipelineOptions,
    Placement,
    RankWork,
    Retrace,
    Split,
    Stage,
    StageDetail,
    Steps,
)
from flatout.model.record import record
from flatout.model.run_tree import RunPart, RunTree
from flatout.model.vocabulary import (
    Confidence,
    CopyKind,
    DeviceKind,
    Equivalence,
    ParityVerdict,
    State,
    StepKind,
    TrialStage,
    TrialStatus,
    TuneOutcome,
)

__all__ = [
    "SCHEMA",
    "Case",
    "Conclusion",
    "Confidence",
    "Copy",
    "CopyKind",
    "Device",
    "DeviceDetail",
    "DeviceKind",
    "Distribution",
    "Equivalence",
    "Evidence",
    "Finding",
    "Fix",
    "Frame",
    "Function",
    "Host",
    "Interval",
    "Json",
    "Kernel",
    "Latency",
    "Measurement",
    "Memory",
    "MemoryUse",
    "Note",
    "Op",
    "OtherEvidence",
    "ParityVerdict",
    "Pipeline",
    "PipelineOptions",
    "Placement",
    "Program",
    "Proof",
    "RankWork",
    "Retrace",
    "RunPart",
    "RunTree",
    "Serving",
    "Split",
    "Stage",
    "StageDetail",
    "State",
    "StepKind",
    "Steps",
    "Trial",
    "TrialStage",
    "TrialStatus",
    "TuneOutcome",
    "Where",
    "WholeRun",
    "to_plain",
]

SCHEMA = 1
"""Version of the JSON form. It grows when a name changes its meaning; new names alone do not change it."""

E = TypeVar("E", bound=Evidence)


@record(frozen=True)
class Program:
    command: tuple[str, ...] = ()
    directory: str = ""
    started: str = ""
    seconds: float = 0.0
    exit_code: int | None = None
    signal: str | None = None
    error: str | None = None
    """The exception that ended it, if one did."""


@record(frozen=True)
class Note:
    """Something the reader should know about this case: a view that is lost, a limit reached, a warning."""

    level: Literal["info", "warning", "error"]
    text: str
    todo: str = ""


@record(frozen=True)
class Case:
    kind: Literal["run", "trace", "env", "tune", "check", "data", "optimize"]
    program: Program = field(default_factory=Program)
    environment: Json = field(default_factory=dict)
    run: RunTree | None = field(default=None, metadata=LATER)
    """Where the wall clock of a run went."""
    steps: Steps | None = None
    functions: tuple[Function, ...] = ()
    pipelines: tuple[Pipeline, ...] = ()
    ops: tuple[Op, ...] = ()
    memory: Memory | None = None
    devices: tuple[Device, ...] = ()
    hosts: tuple[Host, ...] = ()
    placement: Placement | None = None
    evidence: tuple[Evidence, ...] = ()
    findings: tuple[Finding, ...] = ()
    trials: tuple[Trial, ...] = ()
    tuned: tuple[str, ...] = ()
    """The levers that won together; what `--with @tuned` injects."""
    patch: str = ""
    """Unified diff of the user's source that holds the same speedup."""
    verdict: str = ""
    conclusion: Conclusion | None = None
    """Of a tune: the verdict in the words of a vocabulary."""
    whole_run: WholeRun | None = None
    """Of a tune: what its claim makes of the program from start to end."""
    proof: Proof | None = None
    """Of `tune --prove`."""
    notes: tuple[Note, ...] = ()
    logdir: str | None = None
    """Directory, relative to the case, that TensorBoard and XProf open."""
    schema: int = SCHEMA
    flatout: str = ""

    def evidence_of(self, kind: type[E]) -> tuple[E, ...]:
        return tuple(item for item in self.evidence if isinstance(item, kind))

    def to_json(self) -> Json:
        written: Json = codec.to_plain(self)
        return written

    def _repr_html_(self) -> str | None:
        """What a notebook shows; None where the text alone is to be shown."""
        return notebook_view.render(self) if notebook_view.render is not None else None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Case:
        """Rebuild a Case; names that this version does not know are passed over.

        Raises CaseUnreadable where a value does not fit its name.
        """
        from flatout.model.evidence import kinds  # noqa: F401  # registers every kind of evidence

        return codec.read(cls, data)
