"""What was observed: steps, functions, pipelines, ops, memory, devices.

Units: times are milliseconds, sizes bytes, shares 0–1.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, ClassVar, Literal

from flatout.model.codec import LATER, REST, Json, renamed
from flatout.model.evidence.base import Evidence
from flatout.model.evidence.job import Collectives, RankInput
from flatout.model.location import Where
from flatout.model.record import record
from flatout.model.vocabulary import CopyKind, DeviceKind, RankState, State, StepKind


@record(frozen=True)
class Distribution:
    median: float
    p10: float
    p90: float
    mean: float = 0.0
    low: float = 0.0
    high: float = 0.0


@record(frozen=True)
class Split:
    """Where the time of one step goes; the parts add up to the median step."""

    input: float = 0.0
    trace: float = 0.0
    python: float = 0.0
    compute: float = 0.0
    copy: float = 0.0
    idle: float = 0.0

    def total(self) -> float:
        return self.input + self.trace + self.python + self.compute + self.copy + self.idle


@record(frozen=True)
class Steps:
    count: int
    found_by: str
    ms: Distribution
    split_ms: Split | None = None
    split_from: str = ""
    warmup: int = 0
    warmup_ms: float = 0.0
    trend: float = 0.0
    """Relative change of the step time from the first to the last third of the steady steps."""
    outliers: int = 0
    window: tuple[int, int] | None = None
    """First and last step (counted from 0) inside the trace window."""
    where: Where | None = None
    times_ms: tuple[float, ...] = ()
    """Step times in order, thinned out to at most a few thousand."""
    kind: StepKind = field(default="train", metadata=renamed(dict.fromkeys(("predict", "evaluate"), "inference")))


@record(frozen=True)
class Retrace:
    """Why one more trace was needed: the argument that changed, from what to what, called from where."""

    argument: str
    before: str
    after: str
    count: int
    where: Where | None = None


@record(frozen=True)
class Function:
    name: str
    where: Where | None
    traces: int
    trace_ms: float
    calls: int = 0
    call_ms: float = 0.0
    why: tuple[Retrace, ...] = ()
    instances: int = 1
    """How many tf.functions were made from the same source line; more than a few is a fault of its own."""
    jit_compile: bool | None = None
    nodes: int = 0


@record(frozen=True)
class StageDetail:
    """Settings and measurements of a stage, as far as they are known."""

    OMIT_NONE: ClassVar[bool] = True

    by: Literal["", "tensorflow", "keras"] | None = None
    """Who made the stage: the program itself, or Keras for it."""
    depth: int | None = None
    """Branches away from the main line, where a stage has several inputs."""
    batch: int | None = None
    drop_remainder: bool | None = None
    count: int | None = None
    cycle: int | None = None
    block: int | None = None
    cache_file: str | None = None
    parallel_reads: int | None = None
    seed: int | None = None
    reshuffle: bool | None = None
    cardinality: int | None = None
    """Elements that leave the stage; -1 is endless, -2 unknown."""
    spec: str | None = None
    element_bytes: int | None = None
    files: int | None = None
    source_bytes: int | None = None
    strings: bool | None = None
    """The source holds text, such as names of files."""
    function_where: tuple[str, int, str] | None = None
    ops: dict[str, int] | None = None
    """Ops of the stage's function by type."""
    runs_as: str | None = None
    """The stage after TensorFlow's own rewrites."""
    parallelism_in_use: float | None = None
    buffered_bytes: int | None = None
    ms_per_batch: float | None = None
    """Busy time for one element that leaves the pipeline."""
    ops_ms_per_step: float | None = None
    cpu_ms: float | None = None
    cpu_ms_per_batch: float | None = None
    per_batch: float | None = None
    """Elements of the stage for one that leaves the pipeline."""
    low_ms: float | None = None
    high_ms: float | None = None
    rounds: int | None = None
    memory_bytes: int | None = None
    """What the stage holds when its buffer is full."""
    critical: bool | None = None
    """It is the stage that limits the pipeline."""
    other: Json = field(default_factory=dict, metadata=REST)

    @property
    def by_keras(self) -> bool:
        return self.by == "keras"


@record(frozen=True)
class Stage:
    """One stage of a tf.data pipeline, source first. `ms` and `cpu_ms` are per element that the stage gives."""

    name: str
    op: str
    where: Where | None = None
    function: str | None = None
    ms: float | None = None
    share: float | None = None
    elements: int | None = None
    bytes: int | None = None
    parallelism: str | None = None
    buffer: str | None = None
    deterministic: bool | None = None
    stateful: State | None = None
    """Why the stage cannot be parallelised or cached; None if stateless."""
    detail: StageDetail = field(default_factory=StageDetail)


@record(frozen=True)
class PipelineOptions:
    """The options of a dataset, and how it was observed."""

    OMIT_NONE: ClassVar[bool] = True

    given: dict[str, Any] = field(default_factory=dict, metadata=REST)
    """TensorFlow's options that matter for speed, where they are set, by their path: `autotune.enabled`."""
    where: tuple[str, int, str] | None = None
    """Where the program set them."""
    iterators: int | None = None
    """How often the pipeline was begun."""
    costs_from: str | None = None
    """What the costs of its stages come from; empty where there are none."""
    drawn: int | None = None
    """Elements that it gave while the steps were looked at."""

    def is_off(self, path: str) -> bool:
        return self.given.get(path) is False


@record(frozen=True)
class Pipeline:
    name: str
    where: Where | None
    stages: tuple[Stage, ...]
    rewritten: tuple[str, ...] = ()
    """The stages as TensorFlow runs them after its own rewrites."""
    wait_ms: float | None = None
    """Mean wait of the consumer for one element."""
    elements: int = 0
    options: PipelineOptions = field(default_factory=PipelineOptions)


@record(frozen=True)
class Op:
    name: str
    type: str
    device: str = ""
    where: Where | None = None
    self_ms: float = 0.0
    """Per step."""
    share: float = 0.0
    count: float = 0.0
    """Executions per step."""
    dtype: str = ""
    shape: str = ""
    axes: str = field(default="", metadata=LATER)
    """The order of axes of a Transpose (`0,3,1,2`), where the graph has it as a constant."""


@record(frozen=True)
class MemoryUse:
    op: str
    bytes: int
    where: Where | None = None
    shape: str = ""
    dtype: str = ""


@record(frozen=True)
class Memory:
    peak_bytes: int
    by_op: tuple[MemoryUse, ...] = ()
    allocator: str = ""
    timeline: tuple[tuple[float, int], ...] = ()
    """(milliseconds since the window began, bytes in use)."""
    process_peak_bytes: int = 0
    limit_bytes: int = 0


@record(frozen=True)
class Copy:
    kind: CopyKind
    count: int
    bytes: int
    ms: float


@record(frozen=True)
class Kernel:
    name: str
    count: int
    ms: float
    share: float
    tensor_core: bool = False
    op: str = ""
    precision: str = ""
    occupancy: float | None = None


@record(frozen=True)
class DeviceDetail:
    """Of an accelerator: how its busy time divides. Of the CPU: how much ran at a time."""

    OMIT_NONE: ClassVar[bool] = True

    compute_ms: float | None = None
    copy_only_ms: float | None = None
    """Copies while nothing was computed."""
    kernel_ms: float | None = None
    kernels: int | None = None
    """That were started."""
    matrix_ms: float | None = None
    """In matrix products and convolutions."""
    fused_ms: float | None = None
    """In kernels that XLA has made of several ops."""
    collective_ms: float | None = None
    precision_shares: dict[str, float] | None = None
    """Share of the matrix arithmetic by precision."""
    streams: dict[str, int] | None = None
    """Events by stream."""
    op_ms: float | None = None
    mean_parallel_ops: float | None = None
    facts: Json = field(default_factory=dict, metadata=REST)
    """What the trace says of the device itself: memory, clock, cores."""


@record(frozen=True)
class Device:
    """One accelerator (or the CPU) over a trace window."""

    name: str
    kind: DeviceKind
    host: str = ""
    window_ms: float = 0.0
    busy_ms: float = 0.0
    busy_share: float = 0.0
    kernels: tuple[Kernel, ...] = ()
    copies: tuple[Copy, ...] = ()
    tensor_core_share: float | None = None
    precision: str = ""
    model: str = ""
    detail: DeviceDetail = field(default_factory=DeviceDetail)


@record(frozen=True)
class RankWork:
    """What a rank did outside of its training steps: a part of its run."""

    kind: str
    """As in the tree of the run: `validation`, `checkpoint`, `summary`."""
    name: str
    seconds: float
    count: int = 0
    where: Where | None = None


@record(frozen=True)
class Host:
    """One machine of a trace, or one rank of a job (then it has a `role`)."""

    name: str
    steps: int = 0
    step_ms: float | None = None
    straggler: bool = False
    note: str = ""
    role: str = field(default="", metadata=LATER)
    """`chief`, `worker`, `ps`, `evaluator`; empty for a host of a trace."""
    index: int = field(default=0, metadata=LATER)
    machine: str = field(default="", metadata=LATER)
    state: RankState | None = field(default=None, metadata=LATER)
    seconds: float = field(default=0.0, metadata=LATER)
    began: float = field(default=0.0, metadata=LATER)
    """When it began, in seconds since 1970."""
    without_step_seconds: float = field(default=0.0, metadata=LATER)
    """From its last step to its end."""
    split_ms: Split | None = field(default=None, metadata=LATER)
    collectives: Collectives | None = field(default=None, metadata=LATER)
    inputs: tuple[RankInput, ...] = field(default=(), metadata=LATER)
    work: tuple[RankWork, ...] = field(default=(), metadata=LATER)
    cores_used: float | None = field(default=None, metadata=LATER)
    cores: int | None = field(default=None, metadata=LATER)
    taken: float | None = field(default=None, metadata=LATER)
    """Share of its processors that something else had while its steps ran."""
    findings: tuple[tuple[str, float, str], ...] = field(default=(), metadata=LATER)
    """Its own: cause, share, place."""
    case: str = field(default="", metadata=LATER)
    """Where its own case is kept, on its machine."""

    @property
    def collective_ms(self) -> float | None:
        """Of a step, in which it does nothing but wait for other ranks or exchange values with them."""
        return self.collectives.ms if self.collectives is not None else None

    @property
    def own_ms(self) -> float | None:
        """Of a step, without that."""
        if self.step_ms is None or self.collectives is None:
            return None
        return max(self.step_ms - self.collectives.ms, 0.0)


@record(frozen=True)
class Placement:
    devices: tuple[str, ...] = ()
    by_device: dict[str, int] = field(default_factory=dict)
    """Ops per step on each device."""
    fallbacks: tuple[Evidence, ...] = ()
    """Ops asked for on one device and run on another."""
