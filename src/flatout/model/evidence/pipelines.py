"""tf.data pipelines: what they compute, how fast they are, what comes out, what was written of it."""

from __future__ import annotations

from flatout.model.evidence.base import Evidence
from flatout.model.record import record


@record(frozen=True)
class PipelineOp(Evidence, kind="pipeline-op", value="ms", unit="ms/step"):
    """One type of op on the threads of tf.data."""

    ms: float
    type: str
    per_step: float = 0.0


@record(frozen=True)
class PipelinePace(Evidence, kind="pipeline-pace", value="ms", unit="ms"):
    """Milliseconds from one element to the next, as it is and as it could be."""

    ms: float
    pipeline: str
    now_ms: float | None = None
    predicted_ms: float | None = None
    divided_ms: float | None = None
    """All stages parallel, on the cores there are."""
    unbounded_ms: float | None = None
    needs_ms: float | None = None
    """What the trainer takes."""
    cores: float | None = None
    critical: int | None = None
    """Index of the stage that limits it."""


@record(frozen=True)
class PipelineDigest(Evidence, kind="pipeline-digest", value="digest"):
    """Of all elements, in order; None where there were too many to read."""

    digest: str | None = None
    elements: int = 0
    whole: bool = False


@record(frozen=True)
class ShardWritten(Evidence, kind="shard", value="bytes", unit="bytes"):
    """One file of a conversion; its name is the note."""

    bytes: int
    elements: int
    sha256: str
