"""The call that made a stage, read from the stage itself.

For datasets that existed before `recipes` was installed. Their stages hold the arguments they were made with: the
user's function, sizes, seeds. The table has one entry for each kind of stage that is understood; others are opaque.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flatout.observe import stages

Call = tuple[str, dict[str, Any]]
"""The name of the method, and its arguments by name."""

DETERMINISTIC = {"true": True, "false": False}


def call_of(stage: Any) -> Call | None:
    """How to make the stage again on `source_of(stage)`; None where that is unknown."""
    read = _KNOWN.get(stages.kind(stage))
    if read is None or not stage._inputs():
        return None
    try:
        return read(stage)
    except (AttributeError, KeyError):  # another TensorFlow keeps it elsewhere
        return None


def source_of(stage: Any) -> Any:
    """The dataset that a stage was made from. `unbatch` inserts two stages of its own before itself."""
    source = stage._inputs()[0]
    if stages.kind(stage) == "Unbatch" and stages.kind(source) == "Restructured":
        source = source._inputs()[0]._inputs()[0]
    return source


def _plain(method: str, **attributes: str) -> Callable[[Any], Call]:
    """A method whose arguments stand in attributes of the stage as they were given."""
    return lambda stage: (method, {name: _value(getattr(stage, attribute)) for name, attribute in attributes.items()})


def _value(given: Any) -> Any:
    """A number or a text as a Python value: some methods inspect it."""
    if getattr(getattr(given, "shape", None), "rank", None) != 0:
        return given
    plain = stages.constant(given)
    return given if plain is None else plain


def _map(stage: Any) -> Call:
    arguments: dict[str, Any] = {"map_func": stage._map_func._func}
    if getattr(stage, "_force_synchronous", False):
        arguments["synchronous"] = True
    return "map", arguments


def _parallel_map(stage: Any) -> Call:
    arguments: dict[str, Any] = {
        "map_func": stage._map_func._func,
        "num_parallel_calls": _value(stage._num_parallel_calls),
        "deterministic": DETERMINISTIC.get(stage._deterministic),
    }
    if getattr(stage, "_use_unbounded_threadpool", False):
        arguments["use_unbounded_threadpool"] = True
    return "map", arguments


def _parallel_batch(stage: Any) -> Call:
    method, arguments = _batch(stage)
    parallel = {
        "num_parallel_calls": _value(stage._num_parallel_calls),
        "deterministic": DETERMINISTIC.get(stage._deterministic),
    }
    return method, {**arguments, **parallel}


def _padded_batch(stage: Any) -> Call:
    _, arguments = _batch(stage)
    padding = {"padded_shapes": stage._padded_shapes, "padding_values": stage._padding_values}  # types count here
    return "padded_batch", {**arguments, **padding}


def _parallel_interleave(stage: Any) -> Call:
    method, arguments = _interleave(stage)
    calls = _value(stage._num_parallel_calls)
    parallel = {"num_parallel_calls": calls, "deterministic": _written(stage, "deterministic")}
    return method, {**arguments, **parallel}


def _written(stage: Any, attribute: str) -> bool | None:
    """A setting that is kept in the graph alone."""
    from tensorflow.core.framework import graph_pb2

    graph = graph_pb2.GraphDef.FromString(stage._as_serialized_graph().numpy())
    node = next(node for node in reversed(graph.node) if attribute in node.attr)
    return DETERMINISTIC.get(node.attr[attribute].s.decode())


_batch = _plain("batch", batch_size="_batch_size", drop_remainder="_drop_remainder")
_interleave = _plain("interleave", cycle_length="_cycle_length", block_length="_block_length")


def _with_function(read: Callable[[Any], Call]) -> Callable[[Any], Call]:
    def call(stage: Any) -> Call:
        method, arguments = read(stage)
        return method, {"map_func": stage._map_func._func, **arguments}

    return call


_KNOWN: dict[str, Callable[[Any], Call]] = {
    "Map": _map,
    "ParallelMap": _parallel_map,
    "Batch": _batch,
    "ParallelBatch": _parallel_batch,
    "PaddedBatch": _padded_batch,
    "Shuffle": _plain("shuffle", buffer_size="_buffer_size", reshuffle_each_iteration="_reshuffle_each_iteration"),
    "Prefetch": _plain("prefetch", buffer_size="_buffer_size"),
    "Cache": _plain("cache", filename="_filename"),
    "Repeat": _plain("repeat", count="_count"),
    "Take": _plain("take", count="_count"),
    "Skip": _plain("skip", count="_count"),
    "Shard": _plain("shard", num_shards="_num_shards", index="_index"),
    "Window": _plain("window", size="_size", shift="_shift", stride="_stride", drop_remainder="_drop_remainder"),
    "Concatenate": _plain("concatenate", dataset="_dataset_to_concatenate"),
    "Unbatch": _plain("unbatch"),
    "Unique": _plain("unique"),
    "FlatMap": _with_function(_plain("flat_map")),
    "Interleave": _with_function(_interleave),
    "ParallelInterleave": _with_function(_parallel_interleave),
    "Filter": lambda stage: ("filter", {"predicate": stage._predicate._func}),
    "TakeWhile": lambda stage: ("take_while", {"predicate": stage._predicate._func}),
    "Options": lambda stage: ("with_options", {"options": stage.options()}),
    "TFRecord": _plain(
        "TFRecordDataset",
        compression_type="_compression_type",
        buffer_size="_buffer_size",
        num_parallel_reads="_num_parallel_reads",
    ),
}
