"""The traced graphs as the child recorded them: the user's line, dtype and shape of each op, by its name."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property

from flatout.model.evidence.graphs import PlacementFallback
from flatout.model.location import Where
from flatout.observe.reading.recording import Recording
from flatout.source import context


@dataclass(frozen=True)
class GraphOp:
    name: str
    type: str
    where: tuple[str, int, str] | None
    dtype: str
    shape: tuple[int | None, ...] | None
    of: str
    """The type that a Cast starts from, the order of axes of a Transpose."""
    device: str
    graph: str
    graph_type: str
    outer: str
    """The graph that this one is a part of: a loop's body has one."""
    number: int
    """Which graph: several traces of a function have the same name."""


class Graphs:
    def __init__(self, recording: Recording) -> None:
        table = [tuple(row) for row in recording.last("places").get("rows") or []]
        self.ops: list[GraphOp] = []
        for number, fact in enumerate(recording.all("graph")):
            for row in fact["ops"]:
                name, kind, line, dtype, shape, *rest = row
                device = next((item for item in rest if item.startswith("/")), "")
                source = next((item for item in rest if not item.startswith("/")), "")
                self.ops.append(
                    GraphOp(
                        name,
                        kind,
                        table[line] if 0 <= line < len(table) else None,
                        dtype,
                        _shape(shape),
                        source,
                        device,
                        fact["name"],
                        fact["type"],
                        fact.get("outer") or "",
                        number,
                    )
                )

    @cached_property
    def by_name(self) -> dict[str, GraphOp]:
        # Later graphs are those that run: a first trace that only made the variables comes before them.
        return {op.name: op for op in self.ops}

    @cached_property
    def pipeline_op_names(self) -> set[str]:
        return {op.name for op in self.ops if op.graph.startswith("Dataset_") and not _is_loop_scan(op.graph)}

    def find(self, node: str) -> GraphOp | None:
        """An op of the trace, whose name carries the calls it was inlined through."""
        name = node
        while True:
            found = self.by_name.get(name)
            if found is not None:
                return found
            _, slash, rest = name.partition("/")
            if not slash:
                break
            name = rest
        # Grappler appends suffixes such as `-0-TransposeNHWCToNCHW-LayoutOptimizer` or `/_12`.
        trimmed = re.sub(r"(-\d+-\w+-\w+Optimizer|/_\d+|_\d+__cf__\d+|__inlined.*)$", "", node)
        return self.find(trimmed) if trimmed != node else None

    def where(self, node: str) -> Where | None:
        found = self.find(node)
        return context.where(*found.where) if found is not None and found.where else None

    def requested_devices(self) -> dict[str, int]:
        return dict(Counter(op.device for op in self.ops if op.device))

    def fallbacks(self, devices: list[str]) -> tuple[PlacementFallback, ...]:
        """Ops that ask for a device which is not there; soft placement puts them elsewhere."""
        present = {_device(name) for name in devices}
        if not present:
            return ()
        groups: dict[tuple[str, tuple[str, int, str] | None], int] = defaultdict(int)
        for op in self.ops:
            wanted = _device(op.device)
            if wanted and wanted not in present:
                groups[(wanted, op.where)] += 1
        return tuple(
            PlacementFallback(
                count,
                wanted,
                tuple(sorted(present)),
                where=context.where(*where) if where else None,
                source="graph",
                note=f"asked for {wanted}, which this machine does not have",
            )
            for (wanted, where), count in groups.items()
        )


def _is_loop_scan(graph: str) -> bool:
    """`for x in dataset` inside a tf.function is traced as the function of a scan."""
    return graph.startswith(("Dataset_scan", "Dataset_reduce"))


def _device(name: str) -> str:
    match = re.search(r"device:([A-Z_]+:\d+)", name)
    return match.group(1) if match else ""


def _shape(text: str) -> tuple[int | None, ...] | None:
    if text == "?" and text != "":
        return (None,)
    if text == "":
        return ()
    return tuple(None if part == "?" else int(part) for part in text.split(","))
