"""What the traced graphs hold, and how often it ran."""

from __future__ import annotations

from flatout.model.evidence.base import Evidence
from flatout.model.record import record


@record(frozen=True)
class Float64Origin(Evidence, kind="float64-origin", value="op_type"):
    """The first line that makes a float64 tensor from none; the op's name is the note."""

    op_type: str


@record(frozen=True)
class NormByHand(Evidence, kind="norm-by-hand", value="times", unit="times"):
    """Batch normalisation spelled out in single ops."""

    times: int
    first: int
    """First line."""
    last: int
    scopes: tuple[str, ...] = ()


@record(frozen=True)
class RepeatedOps(Evidence, kind="repeated-ops", value="copies", unit="copies"):
    """A line that put many copies of the same op into one graph: a Python loop unrolled at trace time."""

    copies: int
    type: str
    ops: int
    graph: str
    graph_ops: int = 0
    leading_sizes: tuple[int, ...] = ()
    """First dimensions of the graph's inputs."""
    shape: tuple[int | None, ...] = ()
    kinds: dict[str, int] | None = None


@record(frozen=True)
class GraphLoop(Evidence, kind="graph-loop", value="trips", unit="trips/step"):
    """A loop of the graph that runs many times a step."""

    trips: float
    graph: str
    ms_per_step: float
    ops: int = 0
    share_of_ops: float = 0.0


@record(frozen=True)
class PlacementFallback(Evidence, kind="placement-fallback", value="ops", unit="ops"):
    """Ops that ask for a device which is not there."""

    ops: int
    asked: str
    present: tuple[str, ...] = ()


@record(frozen=True)
class ContendedPython(Evidence, kind="contended-python", value="share", unit="of python"):
    """Share of the step's own Python that ran, or waited for the lock, while the pipeline ran Python too."""

    share: float


@record(frozen=True)
class XlaCompile(Evidence, kind="xla-compile", value="ms", unit="ms/step"):
    """XLA at work while steady steps run."""

    ms: float
    compiles: int
    steps: int


@record(frozen=True)
class Executor(Evidence, kind="executor", value="ms", unit="ms/step"):
    """Time between small ops, inside the graph."""

    ms: float
