"""tf.data pipelines: the stages as written, what each costs, and what TensorFlow made of them.

Costs come from TensorFlow's own performance model of the living iterator, which counts the time that the threads of
each stage are busy. Where it has none (autotuning switched off), the trace's `Iterator::…` events stand in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from flatout.model.case import Pipeline, PipelineOptions, Stage, StageDetail
from flatout.observe.reading.recording import Fact, Recording
from flatout.observe.reading.steps import Measured
from flatout.source import context
from flatout.trace.host_steps import StageTime, StepSplit

OPTIONS = "Options"
DETAILS = (
    "by", "batch", "count", "cardinality", "element_bytes", "files", "source_bytes", "strings", "ops", "cache_file",
    "cycle", "parallel_reads", "spec", "depth",
)  # fmt: skip


@dataclass(frozen=True)
class Node:
    """One stage as TensorFlow runs it."""

    name: str
    busy_ms: float
    elements: int
    parallelism: float | None = None
    buffered_bytes: int = 0
    bytes: int = 0
    drawn: int | None = None
    """Elements while the steps were looked at."""


def read(recording: Recording, split: StepSplit | None, measured: Measured | None) -> tuple[Pipeline, ...]:
    used = {row[0]: row[1] for row in recording.last("iterators").get("rows") or []}
    models = {fact["number"]: fact for fact in recording.all("pipeline-model") if fact.get("nodes")}
    traced = _from_trace(split.stages) if split is not None else []
    found = []
    for fact in recording.all("pipeline"):
        number = fact["number"]
        nodes = _from_model(models[number]) if number in models else []
        source = "model"
        if not nodes and traced and _fits(fact, traced):
            nodes, source = traced, "trace"
        found.append(_pipeline(fact, nodes, source, used.get(number, 0), split))
    return tuple(found)


def _pipeline(fact: Fact, nodes: list[Node], source: str, iterators: int, split: StepSplit | None) -> Pipeline:
    written = [row for row in fact["stages"] if row["name"] != OPTIONS]
    stages = [_stage(row) for row in written]
    total = sum(node.busy_ms for node in nodes) or 1.0
    batches = _batches(nodes)
    for index, node in _align([row["name"] for row in written], nodes):
        stage = stages[index]
        stages[index] = replace(
            stage,
            ms=node.busy_ms / max(node.elements, 1),
            share=node.busy_ms / total,
            elements=node.elements,
            bytes=node.bytes,
            detail=replace(
                stage.detail,
                ms_per_batch=node.busy_ms / max(batches, 1),
                parallelism_in_use=node.parallelism,
                buffered_bytes=node.buffered_bytes,
                runs_as=node.name,
            ),
        )
    if split is not None and split.count:
        stages = _with_op_times(stages, split)
    wait = None
    if split is not None and split.count:
        wait = float(split.parts["input"].sum()) / split.count / 1e9
    drawn = nodes[-1].drawn if nodes else None
    where = fact.get("where") or next((row["where"] for row in reversed(written) if row.get("where")), None)
    return Pipeline(
        name=f"pipeline {fact['number'] + 1}",
        where=context.where(*where) if where else None,
        stages=tuple(stages),
        rewritten=tuple(node.name for node in nodes),
        wait_ms=wait if nodes else None,
        elements=nodes[-1].elements if nodes else 0,
        options=_options(fact.get("options", {}), iterators, source if nodes else "", drawn),
    )


def _options(fact: dict[str, Any], iterators: int, costs_from: str, drawn: int | None) -> PipelineOptions:
    given = {path: value for path, value in fact.items() if path != "where"}
    where = fact.get("where")
    return PipelineOptions(given, tuple(where[:3]) if where else None, iterators, costs_from, drawn)


def _with_op_times(stages: list[Stage], split: StepSplit) -> list[Stage]:
    """The time that the ops of each map took on tf.data's threads, shared where several stages have such ops."""
    totals: dict[str, float] = {}
    for op in split.pipeline_ops:
        totals[op.type] = totals.get(op.type, 0.0) + op.seconds
    holders: dict[str, int] = {}
    for stage in stages:
        for kind in stage.detail.ops or ():
            holders[kind] = holders.get(kind, 0) + 1
    found = []
    for stage in stages:
        mine = sum(totals.get(kind, 0.0) / holders[kind] for kind in stage.detail.ops or ())
        found.append(
            replace(stage, detail=replace(stage.detail, ops_ms_per_step=mine * 1e3 / split.count)) if mine else stage
        )
    return found


def _stage(row: dict[str, Any]) -> Stage:
    parallelism = row.get("parallelism")
    buffer = row.get("buffer")
    where = row.get("where")
    inside = row.get("function_where")
    return Stage(
        name=row["name"],
        op=row["name"],
        where=context.where(*where) if where else None,
        function=row.get("function"),
        parallelism=None if parallelism is None else ("autotuned" if parallelism == -1 else str(parallelism)),
        buffer=None if buffer is None else ("autotuned" if buffer == -1 else str(buffer)),
        deterministic=row.get("deterministic") if isinstance(row.get("deterministic"), bool) else None,
        stateful=row.get("stateful"),
        detail=StageDetail(
            **{name: row[name] for name in DETAILS if row.get(name) is not None},
            function_where=tuple(inside[:3]) if inside else None,
        ),
    )


def _from_model(fact: Fact) -> list[Node]:
    """Source first, along the first input of each node."""
    by_id = {node["id"]: node for node in fact["nodes"]}
    chain: list[Node] = []
    current = by_id.get(fact.get("output")) or next((n for n in fact["nodes"] if n["name"] == "Root"), None)
    seen: set[int] = set()
    while current is not None and current["id"] not in seen:
        seen.add(current["id"])
        extra = 0.0
        if current["name"] in ("FlatMap", "Interleave", "ParallelInterleaveV4", "Interleave[0]"):
            # What the inner datasets do (a generator, a file reader) belongs to the stage that runs them.
            extra = sum(by_id[i]["busy_ms"] for i in current["inputs"][1:] if i in by_id)
        chain.append(
            Node(
                current["name"],
                current["busy_ms"] + extra,
                current["elements"],
                current.get("parameters", {}).get("parallelism"),
                current.get("buffered_bytes", 0),
                current.get("bytes_produced", 0),
                current["elements"] - current["before"] if "before" in current else None,
            )
        )
        current = next((by_id[i] for i in current["inputs"] if i in by_id), None)
    return [node for node in reversed(chain) if node.name != "Root"]


def _from_trace(stages: tuple[StageTime, ...]) -> list[Node]:
    """The longest chain of `Iterator::Root::A::B` paths, source first."""
    paths = {stage.path: stage for stage in stages}
    if not paths:
        return []
    longest = max(paths, key=lambda path: (path.count("::"), paths[path].count))
    chain = []
    parts = re.split(r"::", longest)
    for depth in range(len(parts), 2, -1):
        stage = paths.get("::".join(parts[:depth]))
        if stage is not None:
            chain.append(Node(parts[depth - 1], stage.self_seconds * 1e3, stage.count))
    return chain


def _fits(fact: Fact, nodes: list[Node]) -> bool:
    names = [row["name"] for row in fact["stages"] if row["name"] != OPTIONS]
    return len(list(_align(names, nodes))) >= max(1, len(names) - 2)


def _batches(nodes: list[Node]) -> int:
    """Elements that reached the consumer (or the last buffer before it)."""
    return next((node.elements for node in reversed(nodes) if node.elements), 0)


def _base(name: str) -> str:
    name = re.sub(r"\[\d+\]$", "", name)
    name = re.sub(r"V\d+$", "", name).removeprefix("Parallel").removeprefix("_")
    return {"FromTensor": "Tensor", "PaddedBatch": "Batch", "TensorDataset": "Tensor"}.get(name, name)


def _align(written: list[str], nodes: list[Node]) -> list[tuple[int, Node]]:
    """Pairs of a written stage's index and the node that runs it; fused nodes go to the map in them."""
    pairs = []
    position = 0
    for node in nodes:
        wanted = "Map" if _base(node.name) == "MapAndBatch" else _base(node.name)
        for index in range(position, len(written)):
            if _base(written[index]) == wanted:
                pairs.append((index, node))
                position = index + 1
                break
    return pairs
