"""A pipeline as TensorFlow runs it, after TensorFlow's own rewrites; read from a running iterator."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

LOOK_SECONDS = 1.0
FUSED = {"MapAndBatch": ("Map", "Batch"), "ShuffleAndRepeat": ("Shuffle", "Repeat"), "MapAndFilter": ("Map", "Filter")}
RENAMED = {"FromTensor": "Tensor", "TensorDataset": "Tensor", "PaddedBatch": "Batch"}


@dataclass(frozen=True)
class Node:
    name: str
    parallelism: float | None = None
    buffered_bytes: int = 0


@dataclass(frozen=True)
class Run:
    """What a short run of the pipeline has shown."""

    nodes: tuple[Node, ...]
    """Source first; empty where TensorFlow keeps no model (autotuning is off)."""
    ms: float | None
    """Between two elements, at full speed; None where there was only one."""
    elements: int
    ended: bool


def look(dataset: Any, seconds: float = LOOK_SECONDS) -> Run:
    """Iterate for a moment at full speed, and read TensorFlow's model of the pipeline."""
    iterator = iter(dataset)
    count, ended, first = 0, False, None
    began = time.perf_counter()  # behind the iterator: making it is not the pipeline's pace
    nodes: tuple[Node, ...] = ()
    for number in itertools.count():
        try:
            next(iterator)
        except StopIteration:
            ended = True
            break
        count += 1
        now = time.perf_counter()
        first = first or now
        if number in (0, 8, 64) or now - began > seconds:
            nodes = _model(iterator) or nodes  # an exhausted iterator has no model
        if now - began > seconds:
            break
    return Run(nodes, _pace(count, ended, began, first, time.perf_counter()), count, ended)


def _pace(count: int, ended: bool, began: float, first: float | None, last: float) -> float | None:
    """Milliseconds for one element. Over a whole epoch all of its time counts: what filled a buffer at the beginning
    costs nothing at the end. Otherwise the first element is left out, which waits until the buffers are full."""
    if ended:
        return (last - began) / count * 1e3 if count else None
    return (last - first) / (count - 1) * 1e3 if first is not None and count > 1 else None


def _model(iterator: Any) -> tuple[Node, ...]:
    import tensorflow as tf

    try:
        model = tf.data.experimental.get_model_proto(iterator)
    except Exception:
        return ()
    chain: list[Node] = []
    current = model.nodes.get(model.output)
    seen: set[int] = set()
    while current is not None and current.id not in seen:
        seen.add(current.id)
        parallelism = next((p.value for p in current.parameters if p.name == "parallelism"), None)
        chain.append(Node(current.name, parallelism, current.buffered_bytes))
        current = next((model.nodes[i] for i in current.inputs if i in model.nodes), None)
    return tuple(node for node in reversed(chain) if node.name not in ("Root", "Options"))


def runs_as(written: Sequence[str], nodes: Sequence[Node]) -> dict[int, Node]:
    """Which node runs each written stage, by position; both source first. Fused stages share a node."""
    pairs: dict[int, Node] = {}
    position = 0
    for node in nodes:
        for part in FUSED.get(_base(node.name), (_base(node.name),)):
            for index in range(position, len(written)):
                if _base(written[index]) == part:
                    pairs[index] = node
                    position = index + 1
                    break
    return pairs


def _base(name: str) -> str:
    name = re.sub(r"\[\d+\]$", "", name)
    name = re.sub(r"(V\d+)?(Dataset)?$", "", name).removeprefix("Parallel").removeprefix("_")
    return RENAMED.get(name, name)
