"""The steps of a run in numbers: how long they take, and where their time goes."""

from __future__ import annotations

from typing import Any

import numpy as np

from flatout.model.case import Distribution, Split, Steps
from flatout.model.vocabulary import StepKind, StreamKind
from flatout.observe.reading.recording import Recording
from flatout.observe.reading.steps import Measured
from flatout.source import context
from flatout.trace.host_steps import StepSplit

MOST_TIMES = 4000
"""Step times that are kept in a case."""
FOUND_BY: dict[StreamKind, str] = {
    "fit": "batches of Keras fit",
    "predict": "batches of Keras predict",
    "evaluate": "batches of Keras evaluate",
    "train-function": "calls of a tf.function that trains",
    "apply": "eager optimizer updates",
    "session": "Session.run",
    "tape": "eager gradient tapes",
    "function": "calls of a tf.function",
    "model": "eager calls of a model",
    "input": "elements taken from a dataset",
}
KIND: dict[StreamKind, StepKind] = {
    "fit": "train",
    "train-function": "train",
    "apply": "train",
    "tape": "train",
    "session": "session",
    "predict": "inference",
    "evaluate": "inference",
    "function": "inference",
    "model": "inference",
    "input": "input",
}


def summarize(recording: Recording, measured: Measured, split: StepSplit | None, window: dict[str, Any]) -> Steps:
    sample = measured.sample * 1e3
    median = float(np.median(sample))
    stack = measured.stream.stack
    times = np.repeat(measured.time, np.minimum(measured.n, 1000)) * 1e3
    if len(times) > MOST_TIMES:
        times = times[np.linspace(0, len(times) - 1, MOST_TIMES).astype(int)]
    thirds = np.array_split(sample, 3) if len(sample) >= 12 else []
    begun = float(np.median(thirds[0])) if thirds else 0.0
    trend = float(np.median(thirds[2])) / begun - 1 if begun > 0 else 0.0
    parts, source = _split(measured, split, median)
    opened = next((f for f in recording.all("window-open") if f["at"] == window.get("opened")), {})
    where = context.where(stack[0][0], stack[0][1], stack[0][2]) if stack else None
    return Steps(
        count=measured.count,
        found_by=FOUND_BY[measured.stream.kind],
        kind=KIND[measured.stream.kind],
        ms=Distribution(
            median=median,
            p10=float(np.percentile(sample, 10)),
            p90=float(np.percentile(sample, 90)),
            mean=float(sample.mean()),
            low=float(sample.min()),
            high=float(sample.max()),
        ),
        split_ms=parts,
        split_from=source,
        warmup=int(measured.n[~measured.steady].sum()),
        warmup_ms=float((measured.time * measured.n)[~measured.steady].sum() * 1e3),
        trend=trend,
        outliers=int((sample > 3 * median).sum()),
        window=(opened["step"], window["step"]) if opened.get("step") is not None else None,
        where=where,
        times_ms=tuple(round(float(t), 4) for t in times),
    )


def _split(measured: Measured, split: StepSplit | None, median: float) -> tuple[Split | None, str]:
    """Shares from the trace window (or from hooks alone), scaled to the median step."""
    if split is not None and split.count:
        usual = split.usual
        whole = float((split.end - split.start)[usual].sum())
        share = {name: float(values[usual].sum()) / whole for name, values in split.parts.items()}
        return Split(**{name: value * median for name, value in share.items()}), f"trace of {split.count} steps"
    chosen = measured.clean if measured.clean.any() else np.ones(len(measured.n), bool)
    whole = float((measured.time * measured.n)[chosen].sum())
    if whole <= 0:
        return None, ""
    waited, traced, called = (float(v[chosen].sum()) / whole for v in (measured.input, measured.trace, measured.call))
    if measured.stream.kind in ("apply", "tape", "model", "fit", "predict", "evaluate"):
        return None, "unknown: without a trace, computing and Python cannot be told apart here"
    computing = max(called - traced, 0.0)
    python = max(1 - waited - traced - computing, 0.0)
    scale = median / max(waited + traced + computing + python, 1e-12)
    return (
        Split(input=waited * scale, trace=traced * scale, compute=computing * scale, python=python * scale),
        "hooks alone, without a trace: time inside a call counts as computing",
    )
