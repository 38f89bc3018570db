"""What it means: findings and their fixes, trials and what they won, models made ready to serve.

A speedup above 1 is faster.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from flatout.model.codec import LATER, Json
from flatout.model.evidence.base import Evidence
from flatout.model.location import Where
from flatout.model.record import record
from flatout.model.vocabulary import (
    Confidence,
    CostOf,
    Equivalence,
    ParityVerdict,
    TrialStage,
    TrialStatus,
    TuneOutcome,
)


@record(frozen=True)
class Fix:
    """What would cure a finding: a lever to inject, an edit of the source, or advice in words."""

    advice: str
    lever: str | None = None
    edit: str | None = None
    equivalence: Equivalence = "exact"


@record(frozen=True)
class Finding:
    """A cause at work here. `cost_share` is `cost_ms` over the milliseconds of what the cost is a part `of`.

    Findings that stand for the same milliseconds count them once: the costs of a case do not add up past the whole.
    """

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
    of: CostOf = field(default="step", metadata=LATER)
    """`step`: both are of each step. `run`: both are of the whole run, for what happens outside of the steps."""
    counted_before: float = field(default=0.0, metadata=LATER)
    """Further share that it stands for, of milliseconds that findings before it have counted already."""

    @property
    def full_share(self) -> float:
        """Its share with what findings before it have counted: what curing it alone could save at most."""
        return (self.cost_share or 0.0) + self.counted_before


@record(frozen=True)
class Interval:
    ratio: float
    low: float
    high: float


@record(frozen=True)
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
    """Of a call, where the machine counts them; of the whole processor, not of this process alone."""
    speedup: Interval | None = None
    """Over tf.function at this batch, where it was claimed."""
    setting: Json = field(default_factory=dict)
    """Of the runtime, where it differs between batches."""


@record(frozen=True)
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
    drop_bound: float | None = None
    """It is worse by at most this, with 95 %: of the metric, of the agreement where there is none; None where only some
    samples were answered."""
    agreement: float | None = None
    """With the original's answers: 1 is the same, 0 no better than their mean."""
    samples: int = 0
    """Held-out samples that these were measured on."""
    size_bytes: int = 0
    memory_bytes: int = 0
    """The most that a process which serves it has held."""
    load_ms: float | None = None
    convert_ms: float | None = None
    conversion_reused: bool | None = None
    """True: an earlier call had converted it, and `convert_ms` is what that took, not time of this run."""
    computes: Json = field(default_factory=dict)
    """How many heavy nodes work in each type."""
    on_front: bool = False
    """Nothing else is better in latency, size and accuracy at once."""
    artefact: str | None = None
    """Its directory, where it was handed over."""


@record(frozen=True)
class Trial:
    levers: tuple[str, ...]
    status: TrialStatus
    speedup: Interval | None = None
    """Step time of the baseline over that of the trial."""
    parity: ParityVerdict = ""
    note: str = ""
    equivalence: Equivalence | Literal[""] = ""
    """What the levers themselves promise; empty where nothing is known of them."""
    step_ms: float | None = None
    cpu: Interval | None = None
    """As `speedup`, for the CPU time of a step."""
    rounds: int = 0
    stage: TrialStage = "single"
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


@record(frozen=True)
class WholeRun:
    """The program from its start to its end, as it is and with what has won: imports, evaluation, saving, all."""

    speedup: Interval | None = None
    """Seconds of the original over those of the changed program."""
    after_imports: Interval | None = None
    """The same without the time until TensorFlow and Keras are imported, which no lever changes."""
    before_seconds: float | None = None
    after_seconds: float | None = None
    pairs: int = 0
    """Runs of the original and of the changed program, one after the other; 0 where the ratio is estimated."""
    estimated: bool = False
    """`before_seconds` was not measured: it follows from the steps of the changed run and what each of them saves."""
    complete: bool = False
    """Whether the changed program has come to its end; where not, `note` says how far it came."""
    steps: int = 0
    """Steps of the changed program that were seen."""
    steps_before: int = field(default=0, metadata=LATER)
    """Those of the original; 0: not known, of another kind, or another number in each run by chance."""
    patched: bool = False
    """Whether the source was patched; else the levers were injected."""
    parity: ParityVerdict = ""
    """How losses and variables agree over the whole training, or as far as there was time to follow it, with the same
    random numbers in both; empty where that could not be compared."""
    compared: str = ""
    """What of it was compared, and how it agrees; or why nothing could be."""
    note: str = ""
    tenfold: float | None = field(default=None, metadata=LATER)
    """The ratio for a run with ten times as many steps: what is done once, before the first step and after the last,
    counts once on both sides. None where it is not known how long the steps took."""
    next_start: bool = field(default=False, metadata=LATER)
    """The changed program was started once before it was measured: it reads what that start has kept."""


@record(frozen=True)
class Proof:
    """The program as it is and with a cure, side by side over its training, with the same random numbers."""

    levers: tuple[str, ...]
    outcome: Literal["same", "differs", "not-shown"]
    parity: ParityVerdict = ""
    compared: str = ""
    """What was compared, and how it agrees."""
    losses: int = 0
    """Steps of which a loss was compared."""
    steps: int = 0
    epochs: int = 0
    variables: int = 0
    of_variables: int = 0
    outputs: int = 0
    """Elements put out that were compared, of a program that does not train."""
    whole: bool = False
    """Whether both came to their end."""
    interrupted: bool = False
    seconds: float = 0.0
    first_step: int | None = None
    """Where it differs: the first step, the variable or loss, and by how much at most."""
    first_thing: str = ""
    by: float | None = None
    notes: tuple[str, ...] = ()
    """What the levers say they have changed, with file and line."""


@record(frozen=True)
class Conclusion:
    """What a tune has come to, and how that is known."""

    outcome: TuneOutcome
    reason: str = ""
    """One or two sentences."""
    command: str = ""
    """What decides it, where it is undecided."""
    by_hand: tuple[str, ...] = ()
    """What to write by hand, with file and line: for levers of the claim that the patch does not hold, or, where
    nothing is claimed, instead of cures that were refused for good."""
    stage: TrialStage | Literal[""] = field(default="", metadata=LATER)
    """With `levers`, the trial that the reason tells of: what is claimed, or the fastest of what is not the same."""
    levers: tuple[str, ...] = field(default=(), metadata=LATER)
