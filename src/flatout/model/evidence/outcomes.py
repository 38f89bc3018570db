"""What the commands report: readings of `env`, patterns of `check`, what a tune or an optimize left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from flatout.model.evidence.base import Evidence
from flatout.model.vocabulary import ReadingStatus


@dataclass(frozen=True, eq=False, repr=False)
class EnvironmentReading(Evidence, kind="environment", value="reading"):
    """What one check of the environment found; the source is the check's name, the note what it means."""

    reading: str
    name: str
    status: ReadingStatus
    meaning: str
    todo: str
    group: str


@dataclass(frozen=True, eq=False, repr=False)
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


@dataclass(frozen=True, eq=False, repr=False)
class LeverSkipped(Evidence, kind="lever-skipped", value="lever"):
    """A lever that was not tried; the note says why."""

    lever: str


@dataclass(frozen=True, eq=False, repr=False)
class RouteSkipped(Evidence, kind="route-skipped", value="route"):
    """A route that was not tried; the note says why."""

    route: str


@dataclass(frozen=True, eq=False, repr=False)
class ModelParameters(Evidence, kind="parameters", value="count"):
    count: int


@dataclass(frozen=True, eq=False, repr=False)
class Objective(Evidence, kind="objective", value="objective"):
    """What an optimize is to improve: latency, throughput, size or memory."""

    objective: str


@dataclass(frozen=True, eq=False, repr=False)
class MaxDrop(Evidence, kind="max-drop", value="drop"):
    """How much worse the answers may become."""

    drop: float


@dataclass(frozen=True, eq=False, repr=False)
class Metric(Evidence, kind="metric", value="name"):
    """What the answers are judged by."""

    name: str
    original: float | None = None
    """That of the original model."""


@dataclass(frozen=True, eq=False, repr=False)
class SampleOrigin(Evidence, kind="data", value="origin"):
    """Where the samples came from: given by the user, or synthetic."""

    origin: str
