"""What detectors ask of a Case again and again: the step, its parts, the hot stage of the input, loops in the source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from flatout.case import Case, Confidence, Evidence, Finding, Fix, Pipeline, Stage, Where

SMALLEST_SHARE = 0.01
"""Findings below this share of the step are not worth a reader's time."""
INPUT_MATTERS = 0.05


def step_ms(case: Case) -> float:
    return case.steps.ms.median if case.steps is not None else 0.0


def part_ms(case: Case, *names: str) -> float:
    """Milliseconds of the step spent in the named parts of the split."""
    if case.steps is None or case.steps.split_ms is None:
        return 0.0
    return float(sum(getattr(case.steps.split_ms, name) for name in names))


def share(case: Case, ms: float) -> float:
    whole = step_ms(case)
    return ms / whole if whole else 0.0


def step_kind(case: Case) -> str:
    """fit, apply, train-function, session, …: how the steps were found."""
    stack = case.evidence_of("step-stack")
    return str(stack[0].value) if stack else ""


def step_fact(case: Case, name: str) -> object:
    stack = case.evidence_of("step-stack")
    return stack[0].data.get(name) if stack else None


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
    """One finding, or none where it costs next to nothing."""
    of_step = None
    if cost_ms is not None and case.steps is not None:
        of_step = (
            min(share(case, cost_ms), 1.0) if cost_ms <= step_ms(case) else cost_ms / max(case.steps.ms.mean, cost_ms)
        )
        if of_step < SMALLEST_SHARE:
            return
    yield Finding(
        cause=cause,
        summary=summary,
        where=where,
        evidence=tuple(evidence),
        cost_ms=cost_ms,
        cost_share=of_step,
        confidence=confidence,
        fixes=tuple(fixes),
        estimate=estimate,
    )


def number(
    kind: str, value: float, unit: str, note: str = "", source: str = "", where: Where | None = None
) -> Evidence:
    return Evidence(kind, value, unit, where, source, note)


# ── the input ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class HotStage:
    pipeline: Pipeline
    index: int
    stage: Stage
    wait_ms: float
    batch: int

    @property
    def per_sample_ms(self) -> float:
        """Busy time of the stage for one element before batching."""
        per_batch = float(self.stage.detail.get("ms_per_batch") or 0.0)
        return per_batch / max(self.batch, 1) if self.before_batch else (self.stage.ms or 0.0)

    @property
    def before_batch(self) -> bool:
        return any("Batch" in stage.name for stage in self.pipeline.stages[self.index + 1 :])

    @property
    def serial(self) -> bool:
        return self.stage.parallelism in (None, "1") and float(self.stage.detail.get("parallelism_in_use") or 1) <= 1

    @property
    def prefix(self) -> tuple[Stage, ...]:
        return self.pipeline.stages[: self.index + 1]


def hot_stage(case: Case) -> HotStage | None:
    """The stage that costs most in the pipeline the steps wait for; None where the input costs nothing."""
    wait = part_ms(case, "input")
    if share(case, wait) < INPUT_MATTERS:
        return None
    measured = [p for p in case.pipelines if any(stage.ms is not None for stage in p.stages)]
    if not measured:
        return None
    pipeline = max(measured, key=lambda p: (sum(s.detail.get("ms_per_batch") or 0.0 for s in p.stages), p.elements))
    index, stage = max(enumerate(pipeline.stages), key=lambda item: item[1].share or 0.0)
    batch = next((int(s.detail["batch"]) for s in pipeline.stages if s.detail.get("batch")), 1)
    return HotStage(pipeline, index, stage, wait, batch)


def users_where(hot: HotStage) -> Where | None:
    return hot.stage.where or hot.pipeline.where


def wait_evidence(case: Case, hot: HotStage) -> list[Evidence]:
    found = [number("input-wait", hot.wait_ms, "ms", "a step waits for its input", "trace")]
    if hot.stage.share is not None:
        busy = float(hot.stage.detail.get("ms_per_batch") or 0.0)
        found.append(number("stage-busy", busy, "ms", f"busy time of {hot.stage.name} per batch", "tf.data model"))
    return found


def cpu_use(case: Case) -> tuple[float, int] | None:
    """Cores kept busy by the process during the steady steps, and cores there are."""
    found = case.evidence_of("cpu-use")
    return (float(found[0].value or 0.0), int(found[0].data["cores"])) if found else None


# ── other findings ───────────────────────────────────────────────────────────────────────────────────────────────


def tracing_ms(case: Case) -> float:
    found = case.evidence_of("tracing")
    return float(found[0].value or 0.0) if found else 0.0


def gpus_present(case: Case) -> list[str]:
    """GPUs that the machine has, whether TensorFlow uses them or not."""
    found = (case.environment.get("nvidia") or {}).get("gpus") or []
    return [str(item.get("name", "a GPU")) if isinstance(item, dict) else str(item) for item in found]


def gpus_in_use(case: Case) -> bool:
    devices = (case.environment.get("tensorflow") or {}).get("devices") or []
    return any("GPU" in str(name) for name in devices) or any(device.kind == "gpu" for device in case.devices)
