"""The subject as a TensorFlow function, from which converters start. Runs in a child process.

The SavedModel's `serve` takes the inputs as arguments and returns a tuple of outputs, both in the original's order. Its
concrete function for a given batch size has static shapes throughout, which LiteRT needs for recurrent layers.
"""

from __future__ import annotations

from typing import Any

from flatout.subject.subject import Subject


def specifications(subject: Subject, batch: int | None) -> list[Any]:
    """One TensorSpec for each input. Batch None: any size; 0: the model has no batch dimension."""
    import tensorflow as tf

    lead = [] if subject.batching == "none" else [batch]
    return [
        tf.TensorSpec([*lead, *one.sample], tf.string if one.dtype == "str" else one.dtype, name=one.name)
        for one in subject.inputs
    ]


def load(subject: Subject, flavour: str = "saved_model") -> Any:
    """The SavedModel. Keep the object alive as long as its function is used: it owns the variables."""
    import tensorflow as tf

    return tf.saved_model.load(str(subject.directory / flavour))


def concrete(subject: Subject, batch: int | None = None, flavour: str = "saved_model") -> Any:
    """A concrete function with variables, for this batch size."""
    import tensorflow as tf

    model = load(subject, flavour)
    function = tf.function(lambda *inputs: model.serve(*inputs), autograph=False)
    result = function.get_concrete_function(*specifications(subject, batch))
    result.owner = model
    return result


def frozen(subject: Subject, batch: int | None = None, flavour: str = "saved_model") -> Any:
    """A concrete function whose weights are constants: its graph is `frozen(…).graph.as_graph_def()`.

    Given variables, converters may lose them or store them twice; with a frozen graph they cannot.
    """
    return frozen_from(concrete(subject, batch, flavour))


def frozen_from(function: Any) -> Any:
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    return _with_static_shapes(convert_variables_to_constants_v2(function))


def _with_static_shapes(function: Any) -> Any:
    """The function with its known shapes as constants, where Keras computes them at run time.

    A Reshape with exactly one open length gets -1 for it: otherwise converters treat everything after it as dynamic
    and do not use their fast kernels. OnesLike and ZerosLike of a tensor with a known shape become constants. What is
    computed from constants alone (positions, masks) no longer depends on the input then, and converters fold it.
    """
    definition = function.graph.as_graph_def()
    shapes: list[tuple[str, list[int]]] = []
    filled = False
    for node in definition.node:
        if node.op not in ("Reshape", *FILLED):
            continue
        tensor = function.graph.get_tensor_by_name(f"{node.name}:0")
        if node.op in FILLED:
            filled |= _make_filled_constant(node, tensor)
        elif tensor.shape.rank is not None and tensor.shape.as_list().count(None) == 1:
            shapes.append((f"{node.name}/static", [-1 if one is None else one for one in tensor.shape.as_list()]))
            node.input[1] = shapes[-1][0]
            node.attr["Tshape"].type = INT32
    for name, lengths in shapes:
        _make_constant(definition.node.add(name=name), lengths, INT32)
    return function_from_graph(definition, function) if shapes or filled else function


FILLED = {"OnesLike": 1, "ZerosLike": 0}
INT32 = 3
"""The value in TensorFlow's DataType enum."""


def _make_filled_constant(node: Any, tensor: Any) -> bool:
    """Turn OnesLike or ZerosLike of a tensor with a known shape into a constant. Returns whether it was possible."""
    if not tensor.shape.is_fully_defined() or not (tensor.dtype.is_floating or tensor.dtype.is_integer):
        return False
    value, shape = FILLED[node.op], tensor.shape.as_list()
    node.ClearField("input")
    node.ClearField("attr")
    _make_constant(node, value, tensor.dtype.as_datatype_enum, shape)
    return True


def _make_constant(node: Any, value: Any, dtype: int, shape: list[int] | None = None) -> None:
    """Turn a node into a constant. A single value for a whole shape is stored once."""
    import tensorflow as tf

    node.op = "Const"
    node.attr["dtype"].type = dtype
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.as_dtype(dtype), shape))


def function_from_graph(definition: Any, like: Any) -> Any:
    """A concrete function of a graph, with the inputs and outputs of another function, matched by name."""
    import tensorflow as tf

    wrapped = tf.compat.v1.wrap_function(lambda: tf.import_graph_def(definition, name=""), [])
    tensors = [[wrapped.graph.as_graph_element(one.name) for one in ends] for ends in (like.inputs, like.outputs)]
    return wrapped.prune(*tensors)
