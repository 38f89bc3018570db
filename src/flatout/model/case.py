"""The nouns. One `Case` flows through flatout: Evidence → Finding → Fix → Trial.

Every stage takes a Case and returns a richer one; every view takes a Case and returns text. All classes are
frozen, hold plain values only, and round-trip through JSON, so that a saved case renders again years later on
a machine without TensorFlow. This module imports nothing of ours and never TensorFlow.

Units: times are milliseconds, sizes bytes, shares 0–1; a speedup above 1 is faster.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

SCHEMA = 1
"""Version of the JSON form. It grows when a name changes its meaning; new names alone do not change it."""

Json = dict[str, Any]


# ── what was observed ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Where:
    """A place in the user's source. `code` is that line's text as it stood when the program ran."""

    file: str | None = None
    line: int | None = None
    function: str | None = None
    code: str | None = None

    def __str__(self) -> str:
        if self.file is None:
            return "(unknown place)"
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Evidence:
    """Something observed: what (`kind`), how much, where, and by which instrument (`source`)."""

    kind: str
    value: float | int | str | bool | None = None
    unit: str = ""
    where: Where | None = None
    source: str = ""
    note: str = ""
    data: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Distribution:
    median: float
    p10: float
    p90: float
    mean: float = 0.0
    low: float = 0.0
    high: float = 0.0


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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
    kind: str = "train"
    """train, predict, evaluate, call (inference by a call), session."""


@dataclass(frozen=True)
class Retrace:
    """Why one more trace was needed: the argument that changed, from what to what, called from where."""

    argument: str
    before: str
    after: str
    count: int
    where: Where | None = None


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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
    stateful: str | None = None
    """Why the stage cannot be parallelised or cached: random, python, variable, lookup table; None if stateless."""
    detail: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Pipeline:
    name: str
    where: Where | None
    stages: tuple[Stage, ...]
    rewritten: tuple[str, ...] = ()
    """The stages as TensorFlow runs them after its own rewrites."""
    wait_ms: float | None = None
    """Mean wait of the consumer for one element."""
    elements: int = 0
    options: Json = field(default_factory=dict)


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class MemoryUse:
    op: str
    bytes: int
    where: Where | None = None
    shape: str = ""
    dtype: str = ""


@dataclass(frozen=True)
class Memory:
    peak_bytes: int
    by_op: tuple[MemoryUse, ...] = ()
    allocator: str = ""
    timeline: tuple[tuple[float, int], ...] = ()
    """(milliseconds since the window began, bytes in use)."""
    process_peak_bytes: int = 0
    limit_bytes: int = 0


@dataclass(frozen=True)
class Copy:
    kind: str
    """host-to-device, device-to-host, device-to-device, device-to-peer."""
    count: int
    bytes: int
    ms: float


@dataclass(frozen=True)
class Kernel:
    name: str
    count: int
    ms: float
    share: float
    tensor_core: bool = False
    op: str = ""
    precision: str = ""
    occupancy: float | None = None


@dataclass(frozen=True)
class Device:
    """One accelerator (or the CPU) over a trace window."""

    name: str
    kind: str
    """cpu, gpu, tpu."""
    host: str = ""
    window_ms: float = 0.0
    busy_ms: float = 0.0
    busy_share: float = 0.0
    kernels: tuple[Kernel, ...] = ()
    copies: tuple[Copy, ...] = ()
    tensor_core_share: float | None = None
    precision: str = ""
    model: str = ""
    detail: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Host:
    name: str
    steps: int = 0
    step_ms: float | None = None
    straggler: bool = False
    note: str = ""


@dataclass(frozen=True)
class Placement:
    devices: tuple[str, ...] = ()
    by_device: dict[str, int] = field(default_factory=dict)
    """Ops per step on each device."""
    fallbacks: tuple[Evidence, ...] = ()
    """Ops asked for on one device and run on another."""


# ── what it means ────────────────────────────────────────────────────────────────────────────────────────────

Equivalence = Literal["exact", "reassociated", "precision", "semantic", "bound"]


@dataclass(frozen=True)
class Fix:
    """What would cure a finding: a lever to inject, an edit of the source, or advice in words."""

    advice: str
    lever: str | None = None
    edit: str | None = None
    equivalence: Equivalence = "exact"


Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True)
class Finding:
    """A cause at work here. `cost_ms` is per step, `cost_share` its share of the step."""

    cause: str
    summary: str
    where: Where | None = None
    evidence: tuple[Evidence, ...] = ()
    cost_ms: float | None = None
    cost_share: float | None = None
    confidence: Confidence = "medium"
    fixes: tuple[Fix, ...] = ()
    estimate: str = ""
    """How the cost was obtained, in words."""


@dataclass(frozen=True)
class Interval:
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Latency:
    """Of one call with a batch of this size (0: the model has no batch dimension), in milliseconds."""

    batch: int
    p50: float
    p95: float
    p99: float
    calls: int = 0
    throughput: float = 0.0
    """Samples a second, one call after the other."""
    joules: float | None = None
    """Of a call, where the machine tells; of the whole processor, not of this process alone."""
    speedup: Interval | None = None
    """Over tf.function at this batch, where it was claimed."""
    setting: Json = field(default_factory=dict)
    """Of the runtime, where it differs between batches."""


@dataclass(frozen=True)
class Serving:
    """A model made ready to serve by one route: what it is, what it answers, what it costs."""

    route: str
    family: str = ""
    format: str = ""
    precision: str = ""
    setting: Json = field(default_factory=dict)
    latencies: tuple[Latency, ...] = ()
    metric: float | None = None
    """The user's metric on held-out samples."""
    drop: float | None = None
    """How much worse than the original's; negative is better."""
    agreement: float | None = None
    """With the original's answers: 1 is the same, 0 no better than their mean."""
    samples: int = 0
    """Held-out samples that these were measured on."""
    size_bytes: int = 0
    memory_bytes: int = 0
    """The most that a process which serves it has held."""
    load_ms: float | None = None
    convert_ms: float | None = None
    computes: Json = field(default_factory=dict)
    """How many heavy nodes work in each type."""
    on_front: bool = False
    """Nothing else is better in latency, size and accuracy at once."""
    artefact: str | None = None
    """Its directory, where it was handed over."""


@dataclass(frozen=True)
class Trial:
    levers: tuple[str, ...]
    status: Literal["won", "lost", "noise", "failed", "timeout"]
    speedup: Interval | None = None
    """Step time of the baseline over that of the trial."""
    parity: str = ""
    """exact, reassociated, precision, failed or unknown: how losses, weights or outputs agree with the baseline's."""
    note: str = ""
    equivalence: str = ""
    """What the levers themselves promise."""
    step_ms: float | None = None
    cpu: Interval | None = None
    """As `speedup`, for the CPU time of a step."""
    rounds: int = 0
    stage: str = "single"
    """bound, single, combination, patch; of an optimize: route, setting, claim."""
    memory_bytes: int = 0
    serving: Serving | None = None

    @property
    def undecided(self) -> bool:
        """The time was over before there were rounds enough for an interval."""
        return self.status == "noise" and self.speedup is None

    @property
    def upon(self) -> tuple[str, ...]:
        """Levers that the program had already, on both sides: the last one alone was tried."""
        return self.levers[:-1] if self.stage == "single" else ()


# ── the case ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Program:
    command: tuple[str, ...] = ()
    directory: str = ""
    started: str = ""
    seconds: float = 0.0
    exit_code: int | None = None
    signal: str | None = None
    error: str | None = None
    """The exception that ended it, if one did."""


@dataclass(frozen=True)
class Note:
    """Something the reader should know about this case: a view that is lost, a limit reached, a warning."""

    level: Literal["info", "warning", "error"]
    text: str
    todo: str = ""


@dataclass(frozen=True)
class Case:
    kind: Literal["run", "trace", "env", "tune", "check", "data", "optimize"]
    program: Program = field(default_factory=Program)
    environment: Json = field(default_factory=dict)
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
    notes: tuple[Note, ...] = ()
    logdir: str | None = None
    """Directory, relative to the case, that TensorBoard and XProf open."""
    schema: int = SCHEMA
    flatout: str = ""

    def evidence_of(self, kind: str) -> tuple[Evidence, ...]:
        return tuple(item for item in self.evidence if item.kind == kind)

    def to_json(self) -> Json:
        return typing.cast(Json, _plain(self))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Case:
        """Rebuild a Case; names that this version does not know are passed over."""
        return typing.cast(Case, _build(cls, data))


def to_plain(value: Any) -> Json:
    """Any of the nouns as plain JSON."""
    return typing.cast(Json, _plain(value))


def trial_from(data: Mapping[str, Any]) -> Trial:
    return typing.cast(Trial, _build(Trial, data))


# ── JSON, both ways ──────────────────────────────────────────────────────────────────────────────────────────


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        return value.item()  # a numpy scalar
    return value


def _build(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    origin = typing.get_origin(kind)
    arguments = typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        known = [a for a in arguments if a is not type(None)]
        return _build(known[0], value) if len(known) == 1 else value
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(_build(arguments[0], item) for item in value)
        return tuple(_build(a, item) for a, item in zip(arguments, value, strict=False))
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        names = {f.name for f in dataclasses.fields(kind)}
        return kind(**{key: _build(hints[key], item) for key, item in value.items() if key in names})
    return value
