"""Loops that compute the samples of a batch one after another, as a run shows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from flatout.model.case import Case, Where
from flatout.model.evidence.graphs import GraphLoop, RepeatedOps
from flatout.model.evidence.steps import Stream
from flatout.source import context

FEWEST = 4
"""Samples a batch from which a loop over them is a fault."""


@dataclass(frozen=True)
class SampleLoop:
    where: Where | None
    samples: float


def eager_loops(case: Case) -> Iterator[SampleLoop]:
    """Something is called far more often than batches are taken from the dataset, from a loop over the batch."""
    streams = case.evidence_of(Stream)
    batches = sum(item.count for item in streams if item.of == "input")
    if not batches:
        return
    found: list[SampleLoop] = []
    for item in streams:
        ratio = item.count / batches
        if item.of not in ("apply", "tape", "model", "train-function", "function") or ratio < FEWEST:
            continue
        for file, line, function, _ in item.stack:
            loop = context.loop_over_samples(file, line)
            if loop is not None:
                # A sample may take several calls: its loop has no more turns than the batch has samples.
                found.append(
                    SampleLoop(context.where(file, loop.line, function), min(ratio, _largest_batch(case, ratio)))
                )
                break
    if found:
        yield max(found, key=lambda loop: loop.samples)


def traced_loops(case: Case) -> Iterator[tuple[RepeatedOps | GraphLoop, SampleLoop]]:
    """A loop over the first axis of the step's input, unrolled into the graph or run as a while loop."""
    candidates: list[RepeatedOps | GraphLoop] = [*case.evidence_of(RepeatedOps), *case.evidence_of(GraphLoop)]
    for item in candidates:
        if item.where is None or item.where.file is None or item.where.line is None:
            continue
        loop = context.loop_over_samples(item.where.file, item.where.line)
        if loop is None:
            continue
        if isinstance(item, GraphLoop):
            times = item.trips
        else:
            sizes = [size for size in item.leading_sizes if size >= FEWEST and item.copies % size == 0]
            times = float(max(sizes, default=0))
        if times >= FEWEST:
            yield item, SampleLoop(context.where(item.where.file, loop.line, item.where.function), times)
            return


def _largest_batch(case: Case, otherwise: float) -> float:
    sizes = [float(s.detail.batch) for p in case.pipelines for s in p.stages if s.detail.batch]
    return max(sizes, default=otherwise)
