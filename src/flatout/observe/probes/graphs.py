"""Graphs that are traced while the program runs: each op with its type, dtype, shape and the user's line.

The graphs are held until the trace window closes, described then, and let go.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.observe.observer import Observer, Probe
from flatout.observe.private_names import patch
from flatout.source import users_code

MOST_GRAPHS = 150
MOST_OPS = 40_000
DULL = {"NoOp", "Identity", "Const"}


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    if not observer.settings.graphs:
        return
    graphs: list[Any] = []
    described = [0]

    def keep(graph: Any) -> None:
        if described[0] < MOST_OPS and len(graphs) < MOST_GRAPHS:
            graphs.append(graph)

    def wrap(original: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            keep(self)

        return __init__

    observer.shared.keep_graph = keep

    patch("graph-init", wrap)

    lines: dict[Any, int] = {}

    def describe() -> None:
        while graphs:
            graph = graphs.pop(0)
            if described[0] >= MOST_OPS:
                graphs.clear()
                break
            if getattr(graph, "__dict__", None) == {}:  # which newer ones do not have
                continue  # dismantled: TensorFlow 2.13 would crash if it were asked for its ops
            try:
                row = _describe(graph, lines)
            except Exception:
                continue  # a graph that is half dismantled
            described[0] += len(row["ops"])
            if row["ops"]:
                observer.recorder.fact("graph", **row)
        observer.recorder.fact("places", rows=[list(line) for line in lines])

    observer.window.on_close.append(describe)
    observer.hooks.at_end.append(describe)


def _describe(graph: Any, lines: dict[Any, int]) -> dict[str, Any]:
    rows = []
    files: dict[str, bool] = {}
    for op in graph.get_operations():
        if op.type in DULL:
            continue
        line = line_of(op, files)
        number = -1 if line is None else lines.setdefault(line, len(lines))
        dtype, shape = "", ""
        if op.outputs:
            first = op.outputs[0]
            dtype = first.dtype.base_dtype.name
            shape = "?" if first.shape.rank is None else ",".join("?" if d is None else str(d) for d in first.shape)
        row: list[Any] = [op.name, op.type, number, dtype, shape]
        if op.type == "Cast" and op.inputs:
            row.append(op.inputs[0].dtype.base_dtype.name)
        if op.type == "Transpose":
            row.append(_permutation(op))
        if op.device:
            row.append(op.device)
        rows.append(row)
    outer = getattr(graph, "outer_graph", None)
    return {
        "name": str(getattr(graph, "name", "graph")),
        "type": type(graph).__name__,
        "outer": str(getattr(outer, "name", "")),
        "ops": rows,
    }


def _permutation(op: Any) -> str:
    """`0,3,1,2`, or nothing where the graph computes it."""
    from tensorflow.python.framework import tensor_util

    order = tensor_util.constant_value(op.inputs[1])
    return "" if order is None else ",".join(map(str, order.tolist()))


def line_of(op: Any, files: dict[str, bool]) -> Any:
    """The user's line that made an op; `files` remembers whose files are the user's."""
    trace = op.traceback
    if not trace:
        return None
    # To ask seventy frames for their file takes longer than all else of an op. TensorFlow leaves out its own quickly,
    # and takes for its own what lies in a directory of the user's called tensorflow/python, too.
    outside = trace.get_user_frames() if hasattr(trace, "get_user_frames") else ()
    return _innermost_of_user(outside, files) or _innermost_of_user(trace, files)


def _innermost_of_user(frames: Any, files: dict[str, bool]) -> Any:
    for frame in reversed(frames):
        known = files.get(frame.filename)
        if known is None:
            known = files[frame.filename] = users_code.is_users_file(frame.filename)
        if known:
            return (users_code.absolute(frame.filename), frame.lineno, frame.name)
    return None


PROBE = Probe("graphs", tensorflow=on_tensorflow)
