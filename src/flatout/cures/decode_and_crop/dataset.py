"""A picture that is decoded and then cropped is decoded only where it is cropped.

The graph of the map is edited: a slice of what `DecodeJpeg` gives becomes `DecodeAndCropJpeg`, and what asks for the
shape of the whole picture reads it from the file's header. Only where nothing else looks at the whole picture, and in
maps without state: what is drawn at random cannot be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flatout.observe import stages
from flatout.pipeline import recipes
from flatout.pipeline.rewriting import Context, Proposal, Refused

OURS = "flatout_crop"
MARGIN = 16
"""Columns on each side that are decoded as well: at the edge of a crop, colours are interpolated otherwise."""
HANDED_ON = ("Identity", "ExpandDims")
KEPT = ("channels", "fancy_upscaling", "try_recover_truncated", "acceptable_fraction", "dct_method")


@dataclass(frozen=True)
class _Cut:
    """A crop in a graph, by the names of its nodes."""

    decode: Any
    slice: Any
    shapes: tuple[Any, ...]
    whole: dict[str, int]
    """Tensors that hold the whole picture → their rank."""


def rewrite(dataset: Any, context: Context) -> Proposal | None:
    for stage in recipes.main_line(dataset):
        recipe = recipes.recipe_of(stage)
        if recipe is None or recipe.method != "map" or not hasattr(stage, "_map_func"):
            continue
        cut = _found(stage._map_func.function.graph)
        if cut is None:
            continue
        if stages.states(stage):
            raise Refused(
                f"the map at {stages.location(stage)} decodes pictures and crops them, and keeps state "
                f"({stages.states(stage)[0]}): write tf.io.decode_and_crop_jpeg there"
            )
        made = recipes.replay_once(stage, {}, {"map_func": _fused(stage._map_func, cut)})
        result = recipes.rebuild(dataset, recipes.exchange(stage, made))
        return Proposal(result, f"the map at {stages.location(stage)} decodes only what is cropped")
    return None


def _found(graph: Any) -> _Cut | None:
    operations = graph.get_operations()
    for decode in (operation for operation in operations if operation.type == "DecodeJpeg"):
        if decode.get_attr("ratio") != 1:
            continue
        whole, slices, shapes = {decode.outputs[0].name: 3}, [], []
        for operation in operations:  # in the order of the graph: what is used comes before its users
            used = [tensor.name for tensor in operation.inputs if tensor.name in whole]
            if not used:
                continue
            if operation.type in HANDED_ON:
                whole[operation.outputs[0].name] = whole[used[0]] + (operation.type == "ExpandDims")
            elif operation.type == "Shape":
                shapes.append(operation)
            elif operation.type == "Slice" and operation.inputs[0].name in whole:
                slices.append(operation)
            else:
                return None
        if len(slices) == 1 and not {tensor.name for tensor in graph.outputs} & set(whole):
            return _Cut(decode, slices[0], tuple(shapes), whole)
    return None


def _fused(function: Any, cut: _Cut) -> Callable[..., Any]:
    """The map's function with the edited graph."""
    import tensorflow as tf
    from tensorflow.python.data.util import structure

    graph = function.function.graph
    definition, instead = _edited(graph, cut)
    outputs = [instead.get(tensor.name, tensor.name) for tensor in graph.outputs]
    inside = graph.inputs[: len(graph.inputs) - len(graph.captures)]

    def fused(*element: Any) -> Any:
        given = structure.to_tensor_list(
            function._input_structure, element if isinstance(function._input_structure, tuple) else element[0]
        )
        here = tf.compat.v1.get_default_graph()
        mapped = {tensor.name: value for tensor, value in zip(inside, given, strict=True)}
        mapped |= {internal.name: here.capture(external) for external, internal in graph.captures}
        found = tf.graph_util.import_graph_def(definition, input_map=mapped, return_elements=outputs, name="")
        for tensor, before in zip(found, graph.outputs, strict=True):
            tensor.set_shape(before.shape)
        return structure.from_compatible_tensor_list(function._output_structure, found)

    return fused


def _edited(graph: Any, cut: _Cut) -> tuple[Any, dict[str, str]]:
    """The graph with our nodes in it, and which tensors stand for which others now."""
    ours = _ours(cut)
    contents, begin, size = (tensor.name for tensor in (cut.decode.inputs[0], *cut.slice.inputs[1:]))
    placeholders = {f"{OURS}/contents": contents, f"{OURS}/begin": begin, f"{OURS}/size": size}
    instead = {shape.outputs[0].name: f"{OURS}/shape{cut.whole[shape.inputs[0].name]}:0" for shape in cut.shapes}
    instead[cut.slice.outputs[0].name] = f"{OURS}/cropped:0"
    definition = graph.as_graph_def()
    for node in definition.node:
        for position, name in enumerate(node.input):
            node.input[position] = instead.get(_full(name), name)
    for node in ours.as_graph_def().node:
        if node.name in placeholders:
            continue
        for position, name in enumerate(node.input):
            node.input[position] = placeholders.get(name, name)
        definition.node.append(node)
    return definition, instead


def _full(name: str) -> str:
    return name if ":" in name or name.startswith("^") else f"{name}:0"


def _ours(cut: _Cut) -> Any:
    """What takes the place of decoding, slicing and asking for shapes, as a graph by itself."""
    import tensorflow as tf

    graph, settings = tf.Graph(), {name: cut.decode.get_attr(name) for name in KEPT}
    settings["dct_method"] = settings["dct_method"].decode()
    rank = cut.whole[cut.slice.inputs[0].name]
    with graph.as_default(), tf.name_scope(OURS):
        contents = tf.compat.v1.placeholder(tf.string, [], name="contents")
        begin, size = (
            tf.compat.v1.placeholder(tensor.dtype, [rank], name=name)
            for tensor, name in zip(cut.slice.inputs[1:], ("begin", "size"), strict=True)
        )
        header = tf.io.extract_jpeg_shape(contents)
        channels = header[2:] if not settings["channels"] else [settings["channels"]]
        shape = tf.concat([header[:2], channels], 0, name="shape3")
        tf.concat([[1], shape], 0, name="shape4")
        (top, left), (height, width) = (
            tf.unstack(tf.cast(part, tf.int32)[rank - 3 : rank - 1]) for part in (begin, size)
        )
        first, last = tf.maximum(left - MARGIN, 0), tf.minimum(left + width + MARGIN, header[1])
        picture = tf.io.decode_and_crop_jpeg(contents, [top, first, height, last - first], **settings)
        picture = picture[:, left - first : left - first + width]
        tf.reshape(picture, tf.concat([tf.ones([rank - 3], tf.int32), tf.shape(picture)], 0), name="cropped")
    return graph
