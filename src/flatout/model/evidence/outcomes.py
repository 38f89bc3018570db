"""What the commands report: readings of `env`, patterns of `check`, what a tune or an optimize left out."""

from __future__ import annotations

from typing import Literal

from flatout.model.evidence.base import Evidence
from flatout.model.record import record
from flatout.model.vocabulary import ReadingStatus


@record(frozen=True)
class EnvironmentReading(Evidence, kind="environment", value="reading"):
    """What one check of the environment found; the source is the check's name, the note what it means."""

    reading: str
    name: str
    status: ReadingStatus
    meaning: str
    todo: str
    group: str


@record(frozen=True)
class PatternSeen(Evidence, kind="pattern", value="name"):
    """A pattern that `check` found in the source."""

    name: str
    pattern: str
    column: int
    end_line: int
    end_column: int
    cell: int | None = None
    """Of a notebook."""
    fix: Literal["safe", "unsafe"] | None = None


@record(frozen=True)
class LeverSkipped(Evidence, kind="lever-skipped", value="lever"):
    """A lever that was not tried; the note says why."""

    lever: str


@record(frozen=True)
class RacedOn(Evidence, kind="raced-on", value="machine"):
    """A machine that raced levers of a tune. What is claimed was raced on the one that the case is of."""

    machine: str
    cpu: str = ""
    cores: int = 0
    """That each race had for itself."""
    gpu: str = ""
    levers: tuple[str, ...] = ()
    seconds: float = 0.0


@record(frozen=True)
class RouteSkipped(Evidence, kind="route-skipped", value="route"):
    """A route that was not tried; the note says why."""

    route: str


@record(frozen=True)
class ModelParameters(Evidence, kind="parameters", value="count"):
    count: int


@record(frozen=True)
class Objective(Evidence, kind="objective", value="objective"):
    """What an optimize is to improve: latency, throughput, size or memory."""

    objective: str


@record(frozen=True)
class MaxDrop(Evidence, kind="max-drop", value="drop"):
    """How much worse the answers may become."""

    drop: float


@record(frozen=True)
class Metric(Evidence, kind="metric", value="name"):
    """What the answers are judged by."""

    name: str
    original: float | None = None
    """That of the original model."""


@record(frozen=True)
class SampleOrigin(Evidence, kind="data", value="origin"):
    """Where the samples came from: given by the user, or synthetic."""

    origin: str
