"""What the recording of one rank says about its job: collectives, distributed datasets, where it was at its end."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from flatout.model.case import Evidence, Op, Pipeline
from flatout.model.evidence.job import Collectives, RankInput
from flatout.model.evidence.program import LastSeen
from flatout.observe.reading.recording import Recording
from flatout.observe.reading.steps import Measured
from flatout.source import context
from flatout.trace.host_steps import COLLECTIVE, StepSplit

MOST_STEPS = 64
"""Traced steps whose times are kept."""
BYTES = {"half": 2, "bfloat16": 2, "float16": 2, "double": 8, "float64": 8, "int64": 8}


def read(
    recording: Recording,
    measured: Measured | None,
    split: StepSplit | None,
    ops: Sequence[Op],
    pipelines: Sequence[Pipeline],
) -> list[Evidence]:
    return [*collectives(measured, split, ops), *inputs(recording, pipelines), *last_seen(recording, measured)]


def collectives(measured: Measured | None, split: StepSplit | None, ops: Sequence[Op]) -> list[Collectives]:
    """Scaled to the median step, as the parts of the step are: steps take longer while they are traced."""
    if measured is None or split is None or not split.count or not split.collective.any():
        return []
    mine = [op for op in ops if COLLECTIVE.search(f":{op.type}")]
    usual = split.usual
    traced = float((split.end - split.start)[usual].sum()) / float(split.steps[usual].sum()) / 1e9
    scale = float(np.median(measured.sample)) * 1e3 / traced if traced else 1.0
    spent = float(split.collective[usual].sum()) / float(split.steps[usual].sum()) / 1e9
    if spent > traced:
        return []
    largest = max(mine, key=lambda op: op.self_ms, default=None)
    return [
        Collectives(
            spent * scale,
            per_step=sum(op.count for op in mine),
            bytes_per_step=sum(op.count * _bytes(op) for op in mine),
            first_step=int(split.numbers[0]),
            step_ms=_series(split, scale),
            op=largest.type if largest is not None else "",
            where=largest.where if largest is not None else None,
            source="trace",
        )
    ]


def _series(split: StepSplit, scale: float) -> tuple[float, ...]:
    """Step by step, as long as each mark stands for one step."""
    single = split.steps == 1
    whole = len(single) if single.all() else int(np.argmin(single))
    return tuple(round(scale * float(value) / 1e9, 3) for value in split.collective[: min(whole, MOST_STEPS)])


def _bytes(op: Op) -> float:
    sizes = re.findall(r"\d+", op.shape)
    if "?" in op.shape or (op.shape and not sizes):
        return 0.0
    return float(math.prod(map(int, sizes)) * BYTES.get(op.dtype, 4))


def inputs(recording: Recording, pipelines: Sequence[Pipeline]) -> list[RankInput]:
    """The datasets that a strategy distributes, as the program gave them."""
    found = []
    for fact in recording.all("distributed"):
        where = context.where(*fact["where"]) if fact.get("where") else None
        found.append(
            RankInput(
                fact.get("policy"),
                sharded=_sharded(fact),
                from_function=bool(fact.get("from_function")),
                pipelines=int(fact.get("pipelines") or 1),
                replicas=int(fact.get("replicas") or 1),
                strategy=str(fact.get("strategy") or ""),
                batch=fact.get("batch"),
                files=fact.get("files"),
                source_id=str(fact.get("source") or ""),
                cardinality=fact.get("cardinality"),
                where=where,
                source="hook",
            )
        )
    return found


def _sharded(fact: dict[str, Any]) -> bool | None:
    """Whether this rank reads a part of the data only. Elements are divided after the work where files cannot be."""
    pipelines = int(fact.get("pipelines") or 1)
    if pipelines < 2 or fact.get("shards") or fact.get("service"):
        return True
    if fact.get("from_function") or fact.get("policy") == "off":
        return False if fact.get("source") else None  # each rank may have made data of its own
    if fact.get("policy") == "data":
        return False
    # AUTO divides files, and fails where there are fewer than ranks; what comes from no files, it divides by elements.
    return True if fact.get("policy") in ("file", "hint") or fact.get("files") is not None else None


def last_seen(recording: Recording, measured: Measured | None) -> list[LastSeen]:
    state, launch = recording.last("run"), recording.last("launch")
    if not state.get("newest") or measured is None or not launch:
        return []
    rows = recording.ticks
    ended = rows[rows[:, 0] == measured.stream.id, 3] if len(rows) else np.zeros(0)
    if not len(ended):
        return []
    file, line, name = state["newest"][0][:3]
    return [
        LastSeen(
            max(float(launch["ended"]) - float(ended.max()), 0.0),
            in_call=bool(state.get("in_call")),
            where=context.where(file, line, name),
            source="samples",
        )
    ]
