"""Inspects a dataset: the cost of every stage, which one limits it, how fast it could be, and what the trainer needs.

`inspect` makes a Case of kind `data`: the pipeline with its stages, and evidence of its pace. Costs are per element
that leaves the pipeline (usually a batch), unless stated to be per element of the stage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from flatout.data import ceilings
from flatout.model.case import Case, Note, Pipeline, PipelineOptions, Stage
from flatout.model.evidence.pipelines import PipelinePace
from flatout.observe import stages
from flatout.pipeline import caching, copies, descriptions, recipes, runtime_model, stage_costs

Report = Callable[[str], None]
NO_REPORT: Report = lambda _: None  # noqa: E731


def inspect(
    datasets: Sequence[Any],
    needs: float | None = None,
    costs: stage_costs.Costs | None = None,
    report: Report = NO_REPORT,
) -> Case:
    """`needs`: elements per second that the trainer takes, if known."""
    recipes.install()
    costs = costs or stage_costs.Costs(report=report)
    pipelines, evidence = [], []
    with recipes.without_draws():
        for number, dataset in enumerate(datasets, 1):
            report(f"pipeline {number} of {len(datasets)}: as TensorFlow runs it")
            run = runtime_model.look(copies.soon(dataset))
            pipeline, found = _inspect_one(stages.plain(dataset), f"pipeline {number}", costs, run, needs)
            pipelines.append(pipeline)
            evidence.append(found)
    notes = [
        Note("info", f"the cost of a stage could not be measured: {why}")
        for why in dict.fromkeys(costs.failed.values())
    ]
    case = Case("data", pipelines=tuple(pipelines), evidence=tuple(evidence), notes=tuple(notes))
    return replace(case, verdict=verdict(case))


def described(datasets: Sequence[Any]) -> Case:
    """The pipelines as written, without running them."""
    found = []
    for number, dataset in enumerate(datasets, 1):
        rows = [descriptions.described(*item) for item in stages.chain(dataset) if stages.kind(item[0]) != "Options"]
        where = next((row.where for row in rows if row.where is not None), None)
        options = PipelineOptions(stages.options_of(dataset))
        found.append(Pipeline(f"pipeline {number}", where, tuple(rows[::-1]), options=options))
    return Case("data", pipelines=tuple(found))


def _inspect_one(
    dataset: Any, name: str, costs: stage_costs.Costs, run: runtime_model.Run, needs: float | None
) -> tuple[Pipeline, PipelinePace]:
    chain = [(stage, depth) for stage, depth in stages.chain(dataset) if stages.kind(stage) != "Options"][::-1]
    measured = {id(stage): costs.of(stage) for stage, _ in chain}
    counts = _for_each_batch(dataset, measured)
    rows = [_with_cost(descriptions.described(*item), measured[id(item[0])], counts.get(id(item[0]))) for item in chain]
    for position, node in runtime_model.runs_as([row.op for row in rows], run.nodes).items():
        rows[position] = _with_node(rows[position], node)
    total = sum(ceilings.cost(row) for row in rows) or 1.0
    rows = [replace(row, share=ceilings.cost(row) / total) for row in rows]
    options = stages.options_of(dataset)
    machine = machine_for(options)
    found = ceilings.ceilings(rows, machine)
    if found.critical is not None:
        limiting = rows[found.critical]
        rows[found.critical] = replace(limiting, detail=replace(limiting.detail, critical=True))
    where = next((row.where for row in reversed(rows) if row.where is not None), None)
    pipeline = Pipeline(
        name=name,
        where=where,
        stages=tuple(rows),
        rewritten=tuple(node.name for node in run.nodes),
        elements=run.elements,
        options=PipelineOptions(options, costs_from="each stage alone"),
    )
    return pipeline, PipelinePace(
        run.ms if run.ms is not None else found.now,
        pipeline=name,
        now_ms=run.ms,
        predicted_ms=found.now,
        divided_ms=found.divided,
        unbounded_ms=found.unbounded,
        needs_ms=1e3 / needs if needs else None,
        cores=machine.cores,
        critical=found.critical,
        where=where,
        source="each stage measured alone",
    )


def machine_for(options: dict[str, Any]) -> ceilings.Machine:
    from flatout.environment import cgroup

    cores = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    quota = cgroup.cpu_quota()
    cores = min(cores, quota[0]) if quota is not None else cores
    pool = int(options.get("threading.private_threadpool_size") or 0)
    return ceilings.Machine(cores, pool if pool > 0 else max(round(cores), 1))


def counts_for_each(dataset: Any, costs: stage_costs.Costs) -> dict[int, float]:
    """How many elements of each stage, by its id, are needed for one element that leaves the pipeline."""
    return _for_each_batch(dataset, {id(stage): costs.of(stage) for stage, _ in stages.chain(dataset)})


def _for_each_batch(dataset: Any, measured: dict[int, stage_costs.Cost | None]) -> dict[int, float]:
    counts: dict[int, float] = {id(dataset): 1.0}
    for stage in reversed(_sources_first(dataset)):
        cost = measured.get(id(stage))
        entering = counts[id(stage)] / (cost.ratio if cost is not None else 1.0)
        inputs = recipes.upstream(stage)
        for before, share in zip(inputs, _shares(stage, inputs), strict=True):
            counts[id(before)] = counts.get(id(before), 0.0) + entering * share
    return counts


def _sources_first(dataset: Any) -> list[Any]:
    """Every stage once, behind all that it reads."""
    found: list[Any] = []
    seen: set[int] = set()

    def visit(stage: Any) -> None:
        if id(stage) not in seen:
            seen.add(id(stage))
            for before in recipes.upstream(stage):
                visit(before)
            found.append(stage)

    visit(dataset)
    return found


def _shares(stage: Any, inputs: Sequence[Any]) -> list[float]:
    """How many elements of each input a stage takes at a time: one of each, or one of some."""
    kind = stages.kind(stage)
    if kind == "DirectedInterleave" and len(inputs) > 1:  # the first input says from which of the others
        return [1.0, *[1 / (len(inputs) - 1)] * (len(inputs) - 1)]
    if kind != "Concatenate":
        return [1.0] * len(inputs)
    lengths = [int(before.cardinality()) for before in inputs]
    if caching.INFINITE in lengths:
        endless = lengths.index(caching.INFINITE)
        return [float(number == endless) for number in range(len(lengths))]
    if min(lengths) < 0 or not sum(lengths):
        return [1 / len(lengths)] * len(lengths)
    return [length / sum(lengths) for length in lengths]


def _with_cost(stage: Stage, cost: stage_costs.Cost | None, count: float | None) -> Stage:
    if cost is None:
        return stage
    factor = count if count is not None else 1.0
    detail = replace(
        stage.detail,
        cpu_ms=cost.cpu_ms,
        ms_per_batch=cost.ms * factor,
        cpu_ms_per_batch=cost.cpu_ms * factor,
        per_batch=factor,
        low_ms=cost.low,
        high_ms=cost.high,
        rounds=cost.rounds,
        element_bytes=cost.bytes,
        memory_bytes=_buffer_bytes(stage, cost.bytes),
    )
    return replace(stage, ms=cost.ms, elements=cost.sample, bytes=cost.bytes * cost.sample, detail=detail)


def _buffer_bytes(stage: Stage, element_bytes: int) -> int | None:
    """The memory of a stage whose buffer is full."""
    cardinality = -2 if stage.detail.cardinality is None else stage.detail.cardinality
    if stage.op == "Cache":
        return cardinality * element_bytes if cardinality >= 0 and not stage.detail.cache_file else None
    if stage.buffer is None or not stage.buffer.isdigit() or stage.op not in ("Shuffle", "Prefetch"):
        return None
    return min(int(stage.buffer), cardinality if cardinality >= 0 else 1 << 62) * element_bytes


def _with_node(stage: Stage, node: runtime_model.Node) -> Stage:
    detail = replace(stage.detail, runs_as=node.name)
    if node.parallelism is not None:
        detail = replace(detail, parallelism_in_use=node.parallelism)
    return replace(stage, detail=detail)


def verdict(case: Case) -> str:
    """The only pipeline, or the slowest of several, in one sentence."""
    paces = [item for item in case.evidence_of(PipelinePace) if item.ms]
    if not paces:
        return "No tf.data pipeline was found."
    slowest = max(paces, key=lambda item: item.ms)
    pipeline = next(pipeline for pipeline in case.pipelines if pipeline.name == slowest.pipeline)
    rate = 1e3 / slowest.ms
    text = f"{rate:,.4g} elements a second leave {pipeline.name}"
    if slowest.critical is not None:
        stage = pipeline.stages[slowest.critical]
        text += f"; {name_of(stage)} is the stage that limits it ({stage.share or 0.0:.0%} of its work)"
    needed = slowest.needs_ms
    if needed:
        enough = slowest.ms <= needed
        text += f"; the trainer takes {1e3 / needed:,.4g} a second: " + ("enough" if enough else "it has to wait")
    return text + "."


def name_of(stage: Stage) -> str:
    """For example `the map decode at train.py:31`."""
    text = f"the {stage.op.removeprefix('Parallel').lower()}"
    text += f" {stage.function}" if stage.function and stage.function != "<lambda>" else ""
    file = os.path.basename(stage.where.file) if stage.where is not None and stage.where.file else ""
    return f"{text} at {file}:{stage.where.line}" if file and stage.where is not None else text
