"""Facts of the recording as Evidence: each with its place and its cost per step."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from typing import Any

import numpy as np

from flatout.case import Evidence, Steps
from flatout.observe.reading.graphs import Graphs
from flatout.observe.reading.recording import Recording
from flatout.observe.reading.steps import Measured
from flatout.source import places
from flatout.trace.host_steps import StepSplit


def read(
    recording: Recording,
    measured: Measured | None,
    split: StepSplit | None,
    graphs: Graphs,
    steps: Steps | None,
) -> tuple[Evidence, ...]:
    count = measured.count if measured is not None else 0
    found: list[Evidence] = []
    found += _switches(recording)
    found += _keras(recording)
    found += _resources(recording, measured)
    if measured is not None and count:
        found += _streams(recording)
        found += _epoch_starts(recording, measured)
        found += _float64(graphs)
        found += _norms(graphs)
        found += _pulls(recording, count)
        found += _conversions(recording, count)
        found += _feeds(recording, measured)
        found += _tracing(measured)
        found += _made_functions(recording, count)
        found += _step_place(recording, measured)
        found += _samples(recording)
        found += _repeated_ops(graphs)
        found += _loops(graphs, split)
        found += _pipeline_ops(split)
    return tuple(found)


def _switches(recording: Recording) -> list[Evidence]:
    found = [
        Evidence(
            "switch",
            fact["name"],
            where=places.where(*fact["where"]) if fact.get("where") else None,
            source="hook",
            data={"given": fact.get("given", [])},
        )
        for fact in recording.all("switch")
    ]
    found += [
        Evidence(
            "legacy-input",
            fact["name"],
            where=places.where(*fact["where"]) if fact.get("where") else None,
            source="hook",
        )
        for fact in recording.all("legacy-input")
    ]
    failure = recording.last("exception")
    if failure:
        where = failure.get("where")
        found.append(
            Evidence(
                "exception",
                failure["type"],
                where=places.where(*where) if where else None,
                note=failure["text"][:500],
                source="interpreter",
            )
        )
    return found


def _keras(recording: Recording) -> list[Evidence]:
    found = [
        Evidence(
            "compile",
            where=places.where(*fact["where"]) if fact.get("where") else None,
            source="hook",
            data={key: fact.get(key) for key in ("run_eagerly", "steps_per_execution", "jit_compile")},
        )
        for fact in recording.all("compile")
    ]
    newest = {fact["method"]: fact for fact in recording.all("keras-calls")}
    for method, fact in newest.items():
        for file, line, function, calls, seconds, batches in fact["rows"]:
            found.append(
                Evidence(
                    "keras-call",
                    method,
                    where=places.where(file, line, function),
                    source="hook",
                    data={"calls": calls, "ms": seconds * 1e3, "batches": batches},
                )
            )
    return found


def _resources(recording: Recording, measured: Measured | None) -> list[Evidence]:
    rows = recording.last("resources").get("rows") or []
    found: list[Evidence] = []
    if len(rows) >= 2 and measured is not None and len(measured.stream.rows) > 2:
        first = measured.stream.rows[min(measured.warmup, len(measured.stream.rows) - 2), 3]
        last = measured.stream.rows[-1, 3]
        inside = [row for row in rows if first <= row[0] <= last]
        if len(inside) >= 3:
            wall = inside[-1][0] - inside[0][0]
            cores = (inside[-1][2] - inside[0][2]) / wall if wall > 0 else 0.0
            idle = (inside[-1][3] - inside[0][3]) / wall if wall > 0 and len(inside[0]) > 3 else None
            found.append(
                Evidence(
                    "cpu-use",
                    round(cores, 3),
                    "cores",
                    source="process clock",
                    data={"cores": _cores(), "idle": None if idle is None else round(idle, 3)},
                )
            )
            growth = (inside[-1][1] - inside[len(inside) // 2][1]) / max(
                inside[-1][0] - inside[len(inside) // 2][0], 1e-9
            )
            found.append(Evidence("memory-growth", growth, "bytes/s", source="process"))
    if rows:
        found.append(Evidence("process-memory", max(int(row[1]) for row in rows), "bytes", source="process"))
    return found


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def _streams(recording: Recording) -> list[Evidence]:
    """Every way in which something happened again and again, the step or not."""
    newest = {fact["id"]: fact["count"] for fact in recording.all("stream-count")}
    return [
        Evidence(
            "stream",
            fact["of"],
            source="hook",
            data={"name": fact.get("name"), "count": newest.get(fact["id"], 0), "stack": fact.get("stack", [])},
        )
        for fact in recording.all("stream")
    ]


def _epoch_starts(recording: Recording, measured: Measured) -> list[Evidence]:
    """What the first step of each epoch costs beyond an ordinary one, spread over all steps."""
    chosen = measured.clean
    if chosen.sum() < 8:
        return []
    if measured.stream.kind == "fit":
        epochs = np.array([fact["at"] for fact in recording.all("epoch")])
        end = measured.stream.rows[:, 3]
        first = (
            np.concatenate(([True], np.diff(np.searchsorted(epochs, end)) > 0)) if len(epochs) else np.zeros(0, bool)
        )
        if not len(first):
            return []
        excess = np.maximum(measured.time - 2 * np.median(measured.time[chosen]), 0)[first & chosen].sum()
    else:
        typical = float(np.median(measured.input[chosen]))
        long = measured.input > 5 * typical + 2 * float(np.median(measured.time[chosen]))
        excess = float(measured.input[chosen & long].sum())
    return [Evidence("epoch-start", float(excess) * 1e3 / int(measured.n[chosen].sum()), "ms/step", source="hook")]


def _float64(graphs: Graphs) -> list[Evidence]:
    """Where float64 enters the traced step: the earliest line that makes a float64 tensor from none."""
    for op in graphs.ops:
        if op.graph.startswith("Dataset_") or op.dtype != "float64" or op.where is None:
            continue
        if op.type not in ("Placeholder", "ReadVariableOp"):
            return [Evidence("float64-origin", op.type, where=places.where(*op.where), source="graph", note=op.name)]
    return []


def _norms(graphs: Graphs) -> list[Evidence]:
    """Batch normalisation spelled out: means over all axes but the last, a square, a root, in one function."""
    groups: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for op in graphs.ops:
        if op.where is not None and not op.graph.startswith("Dataset_") and "gradient" not in op.name:
            groups[(op.where[0], op.where[2])].append(op)
    found = []
    for (_, function), ops in groups.items():
        means = [op for op in ops if op.type == "Mean" and _per_channel(op.shape)]
        roots = [op for op in ops if op.type in ("Sqrt", "Rsqrt") and _per_channel(op.shape)]
        squares = [op for op in ops if op.type in ("Square", "SquaredDifference", "Pow")]
        if function == "<module>" or len(means) < 2 or not roots or not squares:
            continue
        lines = sorted({op.where[1] for op in (*means, *squares, *roots)})
        scopes = sorted({root.name.rpartition("/")[0] for root in roots if "/" in root.name})
        found.append(
            Evidence(
                "norm-by-hand",
                len(roots),
                "times",
                places.where(*roots[0].where),
                "graph",
                data={"first": lines[0], "last": lines[-1], "scopes": scopes[:50]},
            )
        )
    return found


def _per_channel(shape: Any) -> bool:
    return bool(shape) and all(size == 1 for size in shape[:-1]) and (shape[-1] or 0) > 1


def _pulls(recording: Recording, count: int) -> list[Evidence]:
    return [
        Evidence(
            "host-sync",
            seconds * 1e3 / count,
            "ms/step",
            places.where(file, line, function),
            "hook",
            data={"per_step": calls / count, "calls": calls, "bytes_per_step": size / count, "how": how},
        )
        for file, line, function, calls, seconds, size, how in recording.last("pulls").get("rows") or []
    ]


def _conversions(recording: Recording, count: int) -> list[Evidence]:
    return [
        Evidence(
            "conversion",
            seconds * 1e3 / count,
            "ms/step",
            places.where(file, line, function),
            "hook",
            data={
                "per_step": calls / count,
                "calls": calls,
                "bytes_per_step": size / count,
                "same_again": again / max(calls, 1),
                "different": different,
            },
        )
        for file, line, function, calls, seconds, size, again, different in recording.last("conversions").get("rows")
        or []
    ]


def _feeds(recording: Recording, measured: Measured) -> list[Evidence]:
    found = []
    for file, line, function, calls, size, seconds, inside, stream in recording.last("feeds").get("rows") or []:
        if stream != measured.stream.id:
            continue
        found.append(
            Evidence(
                "feed",
                size / max(calls, 1),
                "bytes/step",
                places.where(file, line, function),
                "hook",
                data={"calls": calls, "run_ms": seconds * 1e3 / calls, "graph_ms": inside * 1e3 / calls},
            )
        )
    return found


def _tracing(measured: Measured) -> list[Evidence]:
    """What tracing costs per step after the warm-up: the traces, and the slower first run of each new graph."""
    chosen = measured.clean
    if not chosen.any() or not (measured.trace[chosen] > 0).any():
        return []
    time = measured.time * measured.n
    traced = chosen & (measured.trace > 0)
    plain = chosen & (measured.trace == 0)
    cost = float(measured.trace[traced].sum())
    how = "time spent tracing"
    if plain.sum() >= 5:
        excess = float((time[traced] - np.median(time[plain])).sum())
        if excess > cost:
            cost, how = excess, "steps that trace, against those that do not"
    steps = int(measured.n[chosen].sum())
    return [
        Evidence(
            "tracing",
            cost * 1e3 / steps,
            "ms/step",
            source="hook",
            note=how,
            data={"steps_that_trace": int(traced.sum()), "steps": steps},
        )
    ]


def _made_functions(recording: Recording, count: int) -> list[Evidence]:
    found = []
    for _, _, name, total in recording.last("functions").get("rows") or []:
        if total["made"] < 5 or not total["made_at"]:
            continue
        place = total["made_at"][0]
        found.append(
            Evidence(
                "functions-made",
                total["made"],
                "functions",
                places.where(*place[:3]),
                "hook",
                data={
                    "per_step": total["made"] / count,
                    "trace_ms": total["trace_s"] * 1e3,
                    "name": name,
                    "traces": total["traces"],
                },
            )
        )
    return found


def _step_place(recording: Recording, measured: Measured) -> list[Evidence]:
    """Where the step is written: the stack of the stream, and of the gradient tape when it runs eagerly."""
    found = [
        Evidence(
            "step-stack",
            measured.stream.kind,
            where=places.where(*measured.stream.stack[0][:3]) if measured.stream.stack else None,
            source="hook",
            data={
                "stack": measured.stream.stack,
                **{k: v for k, v in measured.stream.facts.items() if k != "stack"},
            },
        )
    ]
    for calls, stack in recording.last("tapes").get("rows") or []:
        found.append(
            Evidence(
                "eager-tape",
                calls / measured.count,
                "per step",
                places.where(*stack[0][:3]) if stack else None,
                "hook",
                data={"stack": stack},
            )
        )
    return found


def _samples(recording: Recording) -> list[Evidence]:
    fact = recording.last("samples")
    total = sum(row[0] for row in fact.get("rows") or []) or 1
    lines: Counter[tuple[Any, ...]] = Counter()
    inside: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    stacks: dict[tuple[Any, ...], list[Any]] = {}
    for count, users, inner, _tracing_now in fact.get("rows") or []:
        if not users:
            continue
        key = tuple(users[0][:3])
        lines[key] += count
        stacks.setdefault(key, users)
        if inner:
            inside[key][f"{inner[1]} ({inner[0]})"] += count
    return [
        Evidence(
            "line-time",
            count / total,
            "share",
            places.where(*key),
            "sampling",
            data={
                "samples": count,
                "of": total,
                "inside": [name for name, _ in inside[key].most_common(3)],
                "stack": stacks[key],
            },
        )
        for key, count in lines.most_common(15)
    ]


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


def _repeated_ops(graphs: Graphs) -> list[Evidence]:
    """Loops unrolled at trace time: the same line laid many copies of the same op into one graph."""
    groups: dict[tuple[str, tuple[str, int, str]], Counter[str]] = defaultdict(Counter)
    sizes: Counter[str] = Counter()
    inputs: dict[str, set[int]] = defaultdict(set)
    shapes: dict[tuple[str, tuple[str, int, str]], Any] = {}
    for op in graphs.ops:
        sizes[op.graph] += 1
        if op.type == "Placeholder" and op.shape and op.shape[0] and op.shape[0] > 1:
            inputs[op.graph].add(op.shape[0])
        if op.where is not None:
            groups[(op.graph, op.where)][op.type] += 1
            if op.type in REPEATED:
                shapes.setdefault((op.graph, op.where), op.shape)
    found = []
    for (graph, where), counts in groups.items():
        kind, copies = counts.most_common(1)[0]
        if copies < 8 or sum(counts.values()) < 40:
            continue
        found.append(
            Evidence(
                "repeated-ops",
                copies,
                "copies",
                places.where(*where),
                "graph",
                data={
                    "type": kind,
                    "ops": sum(counts.values()),
                    "graph": graph,
                    "graph_ops": sizes[graph],
                    "leading_sizes": sorted(inputs[graph]),
                    "shape": list(shapes.get((graph, where)) or []),
                    "kinds": dict(counts.most_common(6)),
                },
            )
        )
    return sorted(found, key=lambda item: -int(item.data["ops"]))[:20]


BODY = re.compile(r"^(.*?)(?:/while_grad)?/body/_\d+/")
"""How TensorFlow names the ops of a loop's body once the loop is lowered: `while/body/_12/…`."""


def _loops(graphs: Graphs, split: StepSplit | None) -> list[Evidence]:
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
    for name, row in bodies.items():
        if row["trips"] < 4:
            continue
        # The trace leaves cheap ops out, and gradients carry the line of the tape: ask the graph of the body itself.
        lines = Counter(
            op.where
            for op in graphs.ops
            if op.where is not None and "WhileBody" in op.graph_type and _body_of(op.graph) in row["graphs"]
        )
        ranked = [line for line, _ in lines.most_common()]
        where = next(
            (line for line in ranked if places.innermost_loop(line[0], line[1])), ranked[0] if ranked else None
        )
        found.append(
            Evidence(
                "graph-loop",
                row["trips"],
                "trips/step",
                places.where(*where) if where else None,
                "trace",
                data={
                    "graph": name,
                    "ms_per_step": row["seconds"] * 1e3 / split.count,
                    "ops": row["ops"],
                    "share_of_ops": row["runs"] / every if every else 0.0,
                },
            )
        )
    return sorted(found, key=lambda item: -float(item.data["ms_per_step"]))


def _body_of(graph: str) -> str:
    """`while_body_12_rewritten` and `while_body_12_grad_40` belong to one loop."""
    found = re.search(r"while_body_\d+", graph)
    return found.group(0) if found else graph


def _pipeline_ops(split: StepSplit | None) -> list[Evidence]:
    """What the threads of tf.data compute, by type of op."""
    if split is None or not split.count:
        return []
    totals: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for op in split.pipeline_ops:
        totals[op.type][0] += op.seconds
        totals[op.type][1] += op.count
    return [
        Evidence(
            "pipeline-op",
            seconds * 1e3 / split.count,
            "ms/step",
            source="trace",
            data={"type": kind, "per_step": n / split.count},
        )
        for kind, (seconds, n) in sorted(totals.items(), key=lambda item: -item[1][0])[:30]
    ]
