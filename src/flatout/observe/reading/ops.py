"""Ops of the trace window by time, each with the user's line."""

from __future__ import annotations

import re
from dataclasses import replace

from flatout.model.case import Op
from flatout.observe.reading.graphs import Graphs
from flatout.source import context
from flatout.trace.assemble import Accelerators
from flatout.trace.host_steps import StepSplit

MOST_OPS = 600
CALLS = re.compile(r"^(?:(?:Stateful)?PartitionedCall(?:_\d+)?/)+")
"""The calls that a node was inlined through: long, always the same, and of no use to a reader."""


def read(split: StepSplit | None, graphs: Graphs) -> tuple[Op, ...]:
    if split is None or not split.count:
        return ()
    total = sum(op.seconds for op in split.ops) or 1.0
    found = []
    for op in sorted(split.ops, key=lambda op: -op.seconds)[:MOST_OPS]:
        known = None if op.eager else graphs.find(op.name)
        found.append(
            Op(
                name=CALLS.sub("", op.name),
                type=op.type,
                device="CPU",
                where=context.where(*known.where) if known is not None and known.where else None,
                self_ms=op.seconds * 1e3 / split.count,
                share=op.seconds / total,
                count=op.count / split.count,
                dtype=known.dtype if known is not None else "",
                shape=_text(known.shape) if known is not None else "",
                axes=known.of if known is not None and known.type == "Transpose" else "",
            )
        )
    return tuple(found)


def on_devices(used: Accelerators | None, graphs: Graphs) -> tuple[Op, ...]:
    """Ops of GPUs and the like, by the time of their kernels."""
    found = []
    for op in used.ops if used is not None else ():
        known = graphs.find(op.name)
        if known is None:
            found.append(op)
            continue
        where = context.where(*known.where) if known.where else None
        found.append(replace(op, where=where, dtype=known.dtype, shape=_text(known.shape)))
    return tuple(found)


def _text(shape: tuple[int | None, ...] | None) -> str:
    return "" if shape is None else ",".join("?" if size is None else str(size) for size in shape)
