"""Loops that compute the samples of a batch one after another, as a run shows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from flatout.model.case import Case, Evidence, Where
from flatout.source import context

FEWEST = 4
"""Samples a batch from which a loop over them is a fault."""


@dataclass(frozen=True)
class SampleLoop:
    where: Where | None
    samples: float


def eager_loops(case: Case) -> Iterator[SampleLoop]:
    """Something is called far more often than batches are taken from the dataset, from a loop over the batch."""
    streams = case.evidence_of("stream")
    batches = sum(float(item.data["count"]) for item in streams if item.value == "input")
    if not batches:
        return
    found: list[SampleLoop] = []
    for item in streams:
        ratio = float(item.data["count"]) / batches
        if item.value not in ("apply", "tape", "model", "train-function", "function") or ratio < FEWEST:
            continue
        for file, line, function, _ in item.data["stack"]:
            loop = context.loop_over_samples(file, line)
            if loop is not None:
                # A sample may take several calls: its loop has no more turns than the batch has samples.
                found.append(
                    SampleLoop(context.where(file, loop.line, function), min(ratio, _largest_batch(case, ratio)))
                )
                break
    if found:
        yield max(found, key=lambda loop: loop.samples)


def traced_loops(case: Case) -> Iterator[tuple[Evidence, SampleLoop]]:
    """A loop over the first axis of the step's input, unrolled into the graph or run as a while loop."""
    for item in (*case.evidence_of("repeated-ops"), *case.evidence_of("graph-loop")):
        if item.where is None or item.where.file is None or item.where.line is None:
            continue
        loop = context.loop_over_samples(item.where.file, item.where.line)
        if loop is None:
            continue
        times = float(item.value or 0)
        if item.kind == "repeated-ops":
            sizes = [size for size in item.data["leading_sizes"] if size >= FEWEST and times % size == 0]
            if not sizes:
                continue
            times = float(max(sizes))
        if times >= FEWEST:
            yield item, SampleLoop(context.where(item.where.file, loop.line, item.where.function), times)
            return


def _largest_batch(case: Case, otherwise: float) -> float:
    sizes = [float(s.detail["batch"]) for p in case.pipelines for s in p.stages if s.detail.get("batch")]
    return max(sizes, default=otherwise)
