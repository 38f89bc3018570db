"""The subject as a TensorFlow function, in a child process: what converters start from.

The SavedModel's `serve` takes the inputs one by one and gives a tuple of outputs, both in the original's order. A
function of it for a given batch has static shapes throughout, which is what LiteRT needs for recurrent layers.
"""

from __future__ import annotations

from typing import Any

from flatout.subject.subject import Subject


def specifications(subject: Subject, batch: int | None) -> list[Any]:
    """One TensorSpec for each input. Batch None: any; 0: the model has no batch dimension."""
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
    """A concrete function with variables, for this batch."""
    import tensorflow as tf

    model = load(subject, flavour)
    function = tf.function(lambda *inputs: model.serve(*inputs), autograph=False)
    result = function.get_concrete_function(*specifications(subject, batch))
    result.owner = model
    return result


def frozen(subject: Subject, batch: int | None = None, flavour: str = "saved_model") -> Any:
    """A concrete function whose weights are constants: its graph is `frozen(…).graph.as_graph_def()`.

    Converters that are given variables lose them or store them twice; what is frozen first, they cannot.
    """
    return frozen_from(concrete(subject, batch, flavour))


def frozen_from(function: Any) -> Any:
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    return _settled(convert_variables_to_constants_v2(function))


def _settled(function: Any) -> Any:
    """The same with what is known of its shapes said in the graph, where Keras works it out at run time.

    A reshape in which one length alone is open gets -1 there: converters take all that follows for dynamic otherwise,
    and their fast kernels stand aside. Ones or zeros in the shape of a tensor are a constant where that shape is known,
    and with them what is computed from constants alone (positions, masks): converters fold it, once it does not hang
    on the input.
    """
    definition = function.graph.as_graph_def()
    shapes: list[tuple[str, list[int]]] = []
    filled = False
    for node in definition.node:
        if node.op not in ("Reshape", *FILLED):
            continue
        tensor = function.graph.get_tensor_by_name(f"{node.name}:0")
        if node.op in FILLED:
            filled |= _filled(node, tensor)
        elif tensor.shape.rank is not None and tensor.shape.as_list().count(None) == 1:
            shapes.append((f"{node.name}/settled", [-1 if one is None else one for one in tensor.shape.as_list()]))
            node.input[1] = shapes[-1][0]
            node.attr["Tshape"].type = INT32
    for name, lengths in shapes:
        _hold(definition.node.add(name=name), lengths, INT32)
    return function_of(definition, function) if shapes or filled else function


FILLED = {"OnesLike": 1, "ZerosLike": 0}
INT32 = 3
"""As TensorFlow's DataType has it."""


def _filled(node: Any, tensor: Any) -> bool:
    """Make a constant of ones or zeros in a shape that is known; whether that could be done."""
    if not tensor.shape.is_fully_defined() or not (tensor.dtype.is_floating or tensor.dtype.is_integer):
        return False
    value, shape = FILLED[node.op], tensor.shape.as_list()
    node.ClearField("input")
    node.ClearField("attr")
    _hold(node, value, tensor.dtype.as_datatype_enum, shape)
    return True


def _hold(node: Any, value: Any, dtype: int, shape: list[int] | None = None) -> None:
    """Let a node be a constant. Of a single value in a shape the file holds that value alone."""
    import tensorflow as tf

    node.op = "Const"
    node.attr["dtype"].type = dtype
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.as_dtype(dtype), shape))


def function_of(definition: Any, like: Any) -> Any:
    """A graph as a concrete function with the inputs and outputs of another, by their names."""
    import tensorflow as tf

    wrapped = tf.compat.v1.wrap_function(lambda: tf.import_graph_def(definition, name=""), [])
    tensors = [[wrapped.graph.as_graph_element(one.name) for one in ends] for ends in (like.inputs, like.outputs)]
    return wrapped.prune(*tensors)
