"""What the traced graphs hold and how often it ran: loops, copies of a loop's body, norms by hand, float64."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import Any

from flatout.model.evidence.graphs import (
    ContendedPython,
    Executor,
    Float64Origin,
    GraphLoop,
    NormByHand,
    RepeatedOps,
    XlaCompile,
)
from flatout.model.evidence.pipelines import PipelineOp
from flatout.observe.reading.graphs import GraphOp, Graphs
from flatout.source import context
from flatout.trace.host_steps import StepSplit


def float64(graphs: Graphs) -> list[Float64Origin]:
    """Where float64 enters the traced step: the earliest line that makes a float64 tensor from none."""
    for op in graphs.ops:
        if op.graph.startswith("Dataset_") or op.dtype != "float64" or op.where is None:
            continue
        if op.type not in ("Placeholder", "ReadVariableOp"):
            return [Float64Origin(op.type, where=context.where(*op.where), source="graph", note=op.name)]
    return []


UPDATES = ("Assign", "ResourceApply")
"""How the types of ops begin that an optimizer ends with. What stands on their line is its own: Adam, too, has squares
and a root for each channel."""


def norms(graphs: Graphs) -> list[NormByHand]:
    """Batch normalisation spelled out, in one function: two means over all axes but the last, a square, and a root of
    as many channels."""
    groups: dict[tuple[str, str], list[Any]] = defaultdict(list)
    updates = {op.where for op in graphs.ops if op.type.startswith(UPDATES)}
    for op in graphs.ops:
        if op.where is None or op.where in updates or op.graph.startswith("Dataset_") or "gradient" in op.name:
            continue
        groups[(op.where[0], op.where[2])].append(op)
    found = []
    for (_, function), ops in groups.items():
        means = [op for op in ops if op.type == "Mean" and _per_channel(op.shape)]
        twice = {size for size, times in Counter(op.shape[-1] for op in means).items() if times >= 2}
        means = [op for op in means if op.shape[-1] in twice]
        roots = [op for op in ops if op.type in ("Sqrt", "Rsqrt") and _per_channel(op.shape) and op.shape[-1] in twice]
        squares = [op for op in ops if op.type in ("Square", "SquaredDifference", "Pow")]
        if function == "<module>" or not roots or not squares:
            continue
        lines = sorted({op.where[1] for op in (*means, *squares, *roots)})
        if len(lines) < 2:
            continue  # all that a `fit` traces has its line: layers and optimizers of Keras, not a norm by hand
        scopes = sorted({root.name.rpartition("/")[0] for root in roots if "/" in root.name})
        found.append(
            NormByHand(
                len(roots),
                first=lines[0],
                last=lines[-1],
                scopes=tuple(scopes[:50]),
                where=context.where(*roots[0].where),
                source="graph",
            )
        )
    return found


def _per_channel(shape: Any) -> bool:
    return bool(shape) and all(size == 1 for size in shape[:-1]) and (shape[-1] or 0) > 1


REPEATED = {
    "MatMul",
    "Conv2D",
    "BiasAdd",
    "Conv2DBackpropFilter",
    "MatMulV2",
    "BatchMatMulV2",
    "Einsum",
    "DepthwiseConv2dNative",
}


def repeated_ops(graphs: Graphs) -> list[RepeatedOps]:
    """Loops unrolled at trace time: the same line laid many copies of the same op into one graph."""
    groups: dict[tuple[int, tuple[str, int, str]], Counter[str]] = defaultdict(Counter)
    sizes: Counter[int] = Counter()
    names: dict[int, str] = {}
    inputs: dict[int, set[int]] = defaultdict(set)
    shapes: dict[tuple[int, tuple[str, int, str]], Any] = {}
    for op in graphs.ops:
        sizes[op.number] += 1
        names[op.number] = op.graph
        if op.type == "Placeholder" and op.shape and op.shape[0] and op.shape[0] > 1:
            inputs[op.number].add(op.shape[0])
        if op.where is not None:
            groups[(op.number, op.where)][op.type] += 1
            if op.type in REPEATED:
                shapes.setdefault((op.number, op.where), op.shape)
    found = []
    for (graph, where), counts in groups.items():
        kind, copies = counts.most_common(1)[0]
        if copies < 8 or sum(counts.values()) < 40:
            continue
        found.append(
            RepeatedOps(
                copies,
                type=kind,
                ops=sum(counts.values()),
                graph=names[graph],
                graph_ops=sizes[graph],
                leading_sizes=tuple(sorted(inputs[graph])),
                shape=tuple(shapes.get((graph, where)) or ()),
                kinds=dict(counts.most_common(6)),
                where=context.where(*where),
                source="graph",
            )
        )
    return sorted(found, key=lambda item: -item.ops)[:20]


BODY = re.compile(r"^(.*?)(?:/while_grad)?/body/_\d+/")
"""How TensorFlow names the ops of a loop's body once the loop is lowered: `while/body/_12/…`."""


FEWEST_TRIPS = 4


def loops(graphs: Graphs, split: StepSplit | None) -> list[GraphLoop]:
    """Loops of the graph that run many times a step: trips, time, and the user's lines in their bodies."""
    if split is None or not split.count:
        return []
    bodies: dict[str, dict[str, Any]] = defaultdict(
        lambda: {"seconds": 0.0, "trips": 0.0, "runs": 0.0, "ops": 0, "graphs": set()}
    )
    for op in split.ops:
        inside = BODY.match(op.name)
        known = graphs.find(op.name)
        if inside is None and (known is None or "WhileBody" not in known.graph_type):
            continue
        name = inside.group(1).removeprefix("gradient_tape/") if inside else known.graph  # type: ignore[union-attr]
        row = bodies[name]
        row["seconds"] += op.seconds
        row["runs"] += op.count / split.count
        row["trips"] = max(row["trips"], op.count / split.count)
        row["ops"] += 1
        if known is not None:
            row["graphs"].add(_body_of(known.graph))
    every = sum(op.count for op in split.ops) / split.count
    found = []
    seen: set[str] = set()
    for name, row in bodies.items():
        if row["trips"] < FEWEST_TRIPS:
            continue
        seen |= row["graphs"]
        where = _loop_location(graphs, row["graphs"])
        found.append(
            GraphLoop(
                row["trips"],
                graph=name,
                ms_per_step=row["seconds"] * 1e3 / split.count,
                ops=row["ops"],
                share_of_ops=row["runs"] / every if every else 0.0,
                where=context.where(*where) if where else None,
                source="trace",
            )
        )
    found += _untraced_loops(graphs, split, seen)
    return sorted(found, key=lambda item: -item.ms_per_step)


def _untraced_loops(graphs: Graphs, split: StepSplit, seen: set[str]) -> list[GraphLoop]:
    """Loops whose ops the trace leaves out.

    TensorFlow traces no op that it has learned to be cheap, and what runs a thousand times a step is learned quickly:
    of such a loop only the executor's time is left. The graph knows its ops, and how long what it goes through is.
    """
    running = {known.graph for op in split.ops if (known := graphs.find(op.name)) is not None}
    bodies: dict[str, list[GraphOp]] = defaultdict(list)
    for op in graphs.ops:
        if "WhileBody" in op.graph_type and op.type != "Placeholder":
            bodies[_body_of(op.graph)].append(op)
    rows = {}
    for body, ops in bodies.items():
        outer = {op.outer for op in ops}
        if body in seen or not outer & running or (where := _loop_location(graphs, {body})) is None:
            continue
        trips = _length(graphs, body, outer, where)
        if trips >= FEWEST_TRIPS:
            name = next((op.graph for op in ops if "_grad_" not in op.graph), body)
            rows[where] = (name, trips, len(ops))  # of several traces the last one is what runs
    runs = sum(trips * ops for _, trips, ops in rows.values()) + sum(op.count for op in split.ops) / split.count
    between = executor(split)[0].ms if rows and len(split.executing) else 0.0
    return [
        GraphLoop(
            float(trips),
            graph=name,
            ms_per_step=between * trips * ops / runs,
            ops=ops,
            share_of_ops=0.0,  # the time between small ops is in `ms_per_step` here: no other overhead is the loop's
            where=context.where(*where),
            source="graph",
            note="its ops are too cheap for the trace: of the time between small ops, what is its share of them",
        )
        for where, (name, trips, ops) in rows.items()
    ]


def _loop_location(graphs: Graphs, bodies: set[str]) -> tuple[str, int, str] | None:
    """The user's line of a loop's body: gradients carry the line of the tape, and the trace leaves cheap ops out."""
    ours = [
        (op.where, "_grad_" in op.graph)
        for op in graphs.ops
        if op.where is not None and "WhileBody" in op.graph_type and _body_of(op.graph) in bodies
    ]
    lines = Counter(line for line, gradient in ours if not gradient) or Counter(line for line, _ in ours)
    ranked = [line for line, _ in lines.most_common()]
    return next((line for line in ranked if context.innermost_loop(line[0], line[1])), ranked[0] if ranked else None)


def _length(graphs: Graphs, body: str, outer: set[str], where: tuple[str, int, str]) -> int:
    """How often a loop turns, as far as the graph shows: by the range that it counts, else by what it takes apart."""
    loop = context.innermost_loop(where[0], where[1])
    line = loop.line if loop is not None else where[1]
    ranges = [
        op.shape[0] or 0
        for op in graphs.ops
        if op.type == "Range" and op.graph in outer and op.shape and op.where and op.where[:2] == (where[0], line)
    ]
    if any(ranges):
        return max(ranges)
    sizes = Counter(
        op.shape[0]
        for op in graphs.ops
        if op.type == "Placeholder" and op.shape and op.shape[0] and op.shape[0] > 1 and _body_of(op.graph) == body
    ) or Counter(
        op.shape[0]
        for op in graphs.ops
        if op.type == "Placeholder" and op.shape and op.shape[0] and op.shape[0] > 1 and op.graph in outer
    )
    return sizes.most_common(1)[0][0] if sizes else 0


def _body_of(graph: str) -> str:
    """`while_body_12_rewritten` and `while_body_12_grad_40` belong to one loop."""
    found = re.search(r"while_body_\d+", graph)
    return found.group(0) if found else graph


def contended(split: StepSplit | None) -> list[ContendedPython]:
    python = float(split.parts["python"].sum()) if split is not None and split.count else 0.0
    if split is None or python <= 0 or not split.contended.any():
        return []
    share = float(split.contended.sum()) / python
    return [ContendedPython(share, source="trace", note="while the pipeline ran Python too")]


def compiles(split: StepSplit | None) -> list[XlaCompile]:
    """XLA at work while steady steps run: it compiles a function again for each shape that it has not seen."""
    if split is None or not split.count or not split.compiles:
        return []
    spent = float(split.compiling.sum()) / split.count / 1e9
    return [XlaCompile(spent, split.compiles, split.count, source="trace", note="calls in which XLA compiles")]


def executor(split: StepSplit | None) -> list[Executor]:
    if split is None or not split.count or not len(split.executing):
        return []
    usual = split.usual
    spent = float(split.executing[usual].sum()) / int(split.steps[usual].sum()) / 1e9
    return [Executor(spent, source="trace", note="between small ops, inside the graph")]


def pipeline_ops(split: StepSplit | None) -> list[PipelineOp]:
    """What the threads of tf.data compute, by type of op."""
    if split is None or not split.count:
        return []
    totals: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for op in split.pipeline_ops:
        totals[op.type][0] += op.seconds
        totals[op.type][1] += op.count
    return [
        PipelineOp(seconds * 1e3 / split.count, kind, n / split.count, source="trace")
        for kind, (seconds, n) in sorted(totals.items(), key=lambda item: -item[1][0])[:30]
    ]
