"""What a rank of a job shows of the others: collectives, and how its input is divided."""

from __future__ import annotations

from dataclasses import field

from flatout.model.codec import LATER
from flatout.model.evidence.base import Evidence
from flatout.model.record import record
from flatout.model.vocabulary import ShardPolicy


@record(frozen=True)
class Collectives(Evidence, kind="collectives", value="ms", unit="ms/step"):
    """The part of a step in which a rank waits for others, or exchanges values with them, and computes nothing."""

    ms: float
    per_step: float = 0.0
    """Collective ops of a step."""
    bytes_per_step: float = 0.0
    """That are reduced; 0 where shapes are not known."""
    first_step: int = 0
    step_ms: tuple[float, ...] = ()
    """Of each traced step, from `first_step` on: ranks are held against each other step by step."""
    op: str = field(default="", metadata=LATER)


@record(frozen=True)
class RankInput(Evidence, kind="rank-input", value="policy"):
    """A dataset that the program iterates, and how it is divided between the ranks."""

    policy: ShardPolicy | None = None
    """None: no strategy distributes it."""
    sharded: bool | None = None
    """Whether this rank reads a part of the data only; None where that is not known."""
    from_function: bool = False
    """Made by the program for each rank (`distribute_datasets_from_function`)."""
    pipelines: int = 1
    """Input pipelines of the job."""
    replicas: int = 1
    strategy: str = ""
    batch: int | None = None
    """Elements that a replica gets at a time."""
    files: int | None = None
    source_id: str = ""
    """The same on two ranks that read the same files; empty where the files are not known."""
    cardinality: int | None = None


@record(frozen=True)
class RankOf(Evidence, kind="rank-of", value="name"):
    """This process is one rank of a job."""

    name: str
    size: int
    by: str = ""
    coordinates: bool = False
    """It schedules steps that run on other ranks (ParameterServerStrategy): its own time is not that of the steps."""
