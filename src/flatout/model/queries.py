"""Questions that several detectors ask of a Case: the step, its parts, the hot stage of the input."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from flatout.model.case import Case, Confidence, Device, Evidence, Finding, Fix, Measurement, Pipeline, Stage, Where
from flatout.model.evidence.graphs import ContendedPython
from flatout.model.evidence.program import CpuUse
from flatout.model.evidence.steps import EpochStart, LineTime, StepStack, Tracing
from flatout.model.record import record
from flatout.model.vocabulary import StepPart, StreamKind

Line = tuple[str | None, int | None]

SMALLEST_SHARE = 0.01
"""Findings below this share of the step are not worth a reader's time."""
CROWDED = 0.6
"""Share of its cores that a program keeps busy, from which on what runs beside a step takes time from it."""
INPUT_MATTERS = 0.05
"""Share of the step from which the input is worth a look."""
CHEAP_MS = 0.1
"""Below this time per element, calling a stage costs more than its work, and repeating it costs little."""
BUFFERS = ("Shuffle", "Prefetch", "Batch", "ParallelBatch", "PaddedBatch", "Repeat", "Take", "Skip", "Shard", "Cache")


def locations(value: object) -> Iterator[Where]:
    """Every place of source that a case, or a part of it, names."""
    if isinstance(value, Where):
        yield value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from locations(getattr(value, field.name))
    elif isinstance(value, tuple) and value and not isinstance(value[0], (float, int, str)):
        for item in value:
            yield from locations(item)


def is_diagnosed(case: Case) -> bool:
    """Whether the causes were looked for in this case, so that no findings means that nothing was found."""
    return case.kind in ("trace", "check") or (case.kind == "run" and case.steps is not None)


def step_ms(case: Case) -> float:
    return case.steps.ms.median if case.steps is not None else 0.0


def part_ms(case: Case, *names: StepPart) -> float:
    """Milliseconds of the step spent in the named parts of the split."""
    if case.steps is None or case.steps.split_ms is None:
        return 0.0
    return float(sum(getattr(case.steps.split_ms, name) for name in names))


def whole_ms(case: Case) -> float:
    """What shares are of: the median step, and what comes now and then (tracing, a new epoch), spread over all steps.

    The mean will not do: a step during which something else had the processors makes it longer, at no cause's cost.
    """
    return step_ms(case) + now_and_then_ms(case)


def share(case: Case, ms: float) -> float:
    """The one definition of a share: milliseconds over those of the step."""
    whole = whole_ms(case)
    return ms / whole if whole else 0.0


def now_and_then_ms(case: Case) -> float:
    """What is in few steps only, and so not in the median one: the beginnings of epochs, and retracing."""
    tracing = sum(item.ms for item in case.evidence_of(Tracing) if item.steps_that_trace <= item.steps / 2)
    return epoch_start_ms(case) + tracing


def run_ms(case: Case) -> float:
    """Of the whole run, imports included."""
    return 1000 * case.program.seconds


def steps_share(case: Case) -> float:
    """Share of the run that its steps take, without the warm-up; 1 where it is not known."""
    if case.steps is None or not case.program.seconds:
        return 1.0
    trains = case.steps.kind != "inference"  # else the steps of the run may be others than those that were measured
    if trains and case.run is not None and (steps := case.run.seconds_of("steps")):
        return min(steps / case.run.seconds, 1.0)
    return min(max(case.steps.count - case.steps.warmup, 0) * case.steps.ms.mean / run_ms(case), 1.0)


def run_seconds(case: Case, item: Finding) -> float | None:
    """What a finding costs the run, whatever its cost is a part of; None where that is not known."""
    if item.cost_share is None or not case.program.seconds:
        return None
    return item.cost_share * case.program.seconds * (1.0 if item.of == "run" else steps_share(case))


def step_stack(case: Case) -> StepStack | None:
    """Where the step is made, and what is known of the model that makes it."""
    return next(iter(case.evidence_of(StepStack)), None)


def step_kind(case: Case) -> StreamKind | None:
    """How the steps were found; None where there are none."""
    found = step_stack(case)
    return found.step if found is not None else None


def runs_eagerly(case: Case) -> bool:
    """The steps are those of a Keras model that was compiled with run_eagerly."""
    found = step_stack(case)
    return found is not None and bool(found.run_eagerly)


def is_compiled_by_xla(case: Case) -> bool:
    """Whether XLA compiles the steps, or a function that was traced."""
    found = step_stack(case)
    return any(one.jit_compile for one in case.functions) or (found is not None and found.jit_compile is True)


def policy(case: Case) -> str | None:
    """The dtype policy of the Keras model that makes the steps."""
    found = step_stack(case)
    return found.policy if found is not None else None


def stepping_lines(case: Case) -> set[Line]:
    """The line that makes the step, and those that led to it."""
    found = step_stack(case)
    return {(frame.file, frame.line) for frame in found.stack} if found is not None else set()


def lines_ms(case: Case, lines: Collection[Line]) -> float:
    """Milliseconds of a step in which samples found the program on one of these lines."""
    share = sum(
        sample.share
        for sample in case.evidence_of(LineTime)
        if sample.where is not None and (sample.where.file, sample.where.line) in lines
    )
    return share * whole_ms(case)


def finding(
    cause: str,
    case: Case,
    summary: str,
    *,
    cost_ms: float | None,
    where: Where | None,
    evidence: Sequence[Evidence] = (),
    fixes: Sequence[Fix] = (),
    confidence: Confidence = "high",
    estimate: str = "",
) -> Iterable[Finding]:
    """One finding, or none where it costs next to nothing. No cause costs a step more than the step."""
    cost_share = None
    if cost_ms is not None and case.steps is not None:
        whole = whole_ms(case)
        cost_ms = min(cost_ms, whole) if whole else cost_ms
        cost_share = share(case, cost_ms)
        if cost_share < SMALLEST_SHARE:
            return
    yield Finding(
        cause=cause,
        summary=summary,
        where=where,
        evidence=tuple(evidence),
        cost_ms=cost_ms,
        cost_share=cost_share,
        confidence=confidence,
        fixes=tuple(fixes),
        estimate=estimate,
    )


def outside_steps(case: Case, found: Iterable[Finding], total_ms: float) -> Iterable[Finding]:
    """The same findings, with a cost that the steps do not have: `total_ms` of the whole run."""
    whole = run_ms(case)
    if not whole or total_ms < SMALLEST_SHARE * whole:
        return
    for item in found:
        cost = min(total_ms, whole)
        yield replace(item, cost_ms=cost, cost_share=cost / whole, of="run")


def number(
    kind: str, value: float, unit: str, note: str = "", source: str = "", where: Where | None = None
) -> Measurement:
    return Measurement(kind, value, unit, where=where, source=source, note=note)


def counted(count: int, noun: str) -> str:
    """`1 thread`, `2,000 threads`"""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def times_a_step(value: float) -> str:
    """`once a step`, `16 times a step`, `0.5 times a step`"""
    if 0.95 <= value < 1.05:
        return "once a step"
    number = f"{value:.0f}" if value >= 9.95 else f"{value:.1f}" if value >= 0.95 else f"{value:.2g}"
    return f"{number.removesuffix('.0')} times a step"


# ── the input ────────────────────────────────────────────────────────────────────────────────────────────────────


@record(frozen=True)
class HotStage:
    pipeline: Pipeline
    index: int
    stage: Stage
    wait_ms: float
    batch: int

    @property
    def per_sample_ms(self) -> float:
        """Busy time of the stage for one element before batching."""
        per_batch = _stage_cost(self.stage)
        return per_batch / max(self.batch, 1) if self.before_batch else (self.stage.ms or 0.0)

    @property
    def before_batch(self) -> bool:
        return any("Batch" in stage.name for stage in self.pipeline.stages[self.index + 1 :])

    @property
    def serial(self) -> bool:
        return self.stage.parallelism in (None, "1") and (self.stage.detail.parallelism_in_use or 1) <= 1

    @property
    def prefix(self) -> tuple[Stage, ...]:
        return self.pipeline.stages[: self.index + 1]


def hot_stage(case: Case, other_ms: float = 0.0) -> HotStage | None:
    """The stage that costs most in the pipeline the steps wait for; None where the input costs nothing.

    `other_ms` is what the pipeline costs a step in other ways than by letting it wait.
    """
    wait = input_ms(case)
    if share(case, wait + other_ms) < INPUT_MATTERS:
        return None
    measured = [p for p in case.pipelines if any(stage.ms is not None for stage in p.stages)]
    if not measured:
        return None
    pipeline = _of_steps(measured)
    ranked = sorted(enumerate(pipeline.stages), key=lambda item: -_stage_cost(item[1]))
    # A buffer that waits for the stage before it looks busy: prefer stages that do work of their own.
    working = [
        item
        for item in ranked
        if item[1].name not in BUFFERS and _stage_cost(item[1]) >= 0.2 * _stage_cost(ranked[0][1])
    ]
    index, stage = (working or ranked)[0]
    batch = next((s.detail.batch for s in pipeline.stages if s.detail.batch), 1)
    return HotStage(pipeline, index, stage, wait, batch)


def _of_steps(measured: Sequence[Pipeline]) -> Pipeline:
    """The pipeline that took most while the steps were looked at: that of a validation may cost more for each batch."""
    drawn = [pipeline.options.drawn for pipeline in measured]
    known = any(drawn) and None not in drawn

    def cost(pipeline: Pipeline) -> tuple[float, int]:
        of_batch = sum(stage.detail.ms_per_batch or 0.0 for stage in pipeline.stages)
        return of_batch * ((pipeline.options.drawn or 0) if known else 1), pipeline.elements

    return max(measured, key=cost)


def _stage_cost(stage: Stage) -> float:
    return max(stage.detail.ms_per_batch or 0.0, stage.detail.ops_ms_per_step or 0.0)


def input_ms(case: Case) -> float:
    """What the input costs a step: the wait in every step, and that at the beginning of each epoch."""
    return part_ms(case, "input") + epoch_start_ms(case)


def epoch_start_ms(case: Case) -> float:
    """What the beginning of each epoch costs, spread over all steps."""
    starts = case.evidence_of(EpochStart)
    return starts[0].ms if starts else 0.0


def contended_ms(case: Case) -> float:
    """Python of the step's own that ran, or waited for the interpreter's lock, while the pipeline ran Python too."""
    share = sum(item.share for item in case.evidence_of(ContendedPython))
    return min(share, 1.0) * part_ms(case, "python")


def crowded_ms(case: Case) -> float:
    """Computing that is held up by a pipeline's Python, where the program keeps most of its cores busy.

    Python keeps one of n cores busy for as long as it runs. What computes beside it on the others would take
    (n - 1) / n of its time on all of them.
    """
    used = cpu_use(case)
    on_device = any(device.kind == "gpu" for device in case.devices)
    if used is None or case.steps is None or on_device or used.used < CROWDED * used.cores:
        return 0.0
    python = (stage for pipeline in case.pipelines for stage in pipeline.stages if stage.stateful == "python")
    busy = max((_stage_cost(stage) or stage.ms or 0.0 for stage in python), default=0.0)
    return part_ms(case, "compute") * min(busy / max(case.steps.ms.median, 1e-9), 1.0) / used.cores


def users_where(hot: HotStage) -> Where | None:
    return hot.stage.where or hot.pipeline.where


def wait_evidence(case: Case, hot: HotStage) -> list[Measurement]:
    found = [number("input-wait", hot.wait_ms, "ms", "a step waits for its input", "trace")]
    busy = _stage_cost(hot.stage)
    if busy:
        found.append(number("stage-busy", busy, "ms", f"busy time of {hot.stage.name} per batch", "tf.data model"))
    return found


def cpu_use(case: Case) -> CpuUse | None:
    """Cores kept busy by the process during the steady steps, and cores there are."""
    return next(iter(case.evidence_of(CpuUse)), None)


# ── other findings ───────────────────────────────────────────────────────────────────────────────────────────────


def tracing_ms(case: Case) -> float:
    """What tracing costs a step, with the slower first run of each new graph where most steps trace."""
    found = case.evidence_of(Tracing)
    if not found:
        return 0.0
    measured = found[0].ms
    often = found[0].steps_that_trace / max(found[0].steps, 1)
    # A new graph is optimised and set up inside the call before any of its ops runs: idle time of the split.
    return max(measured, part_ms(case, "trace", "idle")) if often > 0.5 else measured


def gpus_present(case: Case) -> list[str]:
    """GPUs that the machine has, whether TensorFlow uses them or not."""
    found = (case.environment.get("nvidia") or {}).get("gpus") or []
    return [str(item.get("name", "a GPU")) if isinstance(item, dict) else str(item) for item in found]


def gpus_in_use(case: Case) -> bool:
    devices = (case.environment.get("tensorflow") or {}).get("devices") or []
    return any("GPU" in str(name) for name in devices) or any(device.kind == "gpu" for device in case.devices)


def busiest_gpu(case: Case) -> Device | None:
    used = [device for device in case.devices if device.kind == "gpu" and device.window_ms]
    return max(used, key=lambda device: device.busy_ms, default=None)


def kernels_per_step(case: Case, device: Device) -> float:
    """The trace holds as many steps as fit into its window."""
    return (device.detail.kernels or 0) * step_ms(case) / device.window_ms


OFTEN = 8
"""Calls from which on something is done again and again, however many steps there are."""
EACH_STEP = 4
"""The same for what is done in each step, where steps are slow and few were seen…"""
MOST_UPDATES = 3
"""…or once for so many of them: a GAN updates its discriminator twice, then its generator."""


def is_often(case: Case, calls: int) -> bool:
    """Whether so many calls are more than a beginning."""
    return calls >= OFTEN or (case.steps is not None and calls >= max(EACH_STEP, case.steps.count / MOST_UPDATES))
