"""The subject as a TensorFlow function, in a child process: what converters start from.

The SavedModel's `serve` takes the inputs one by one and gives a tuple of outputs, both in the original's order. A
function of it for a given batch has static shapes throughout, which is what LiteRT needs for recurrent layers.
"""

from __future__ import annotations

from typing import Any

from flatout.optimize.subject import Subject


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
    """The same with every reshape in which one length alone is open told so, as -1.

    Keras works such shapes out at run time from the size of the batch. Converters then take all that follows for
    dynamic, and their fast kernels stand aside.
    """
    import tensorflow as tf

    definition = function.graph.as_graph_def()
    added = []
    for node in definition.node:
        if node.op != "Reshape":
            continue
        shape = function.graph.get_tensor_by_name(f"{node.name}:0").shape
        if shape.rank is None or shape.as_list().count(None) != 1:
            continue
        lengths = [-1 if length is None else length for length in shape.as_list()]
        added.append((f"{node.name}/settled", lengths))
        node.input[1] = added[-1][0]
        node.attr["Tshape"].type = tf.int32.as_datatype_enum
    if not added:
        return function
    for name, lengths in added:
        constant = definition.node.add(op="Const", name=name)
        constant.attr["dtype"].type = tf.int32.as_datatype_enum
        constant.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(lengths, tf.int32))
    return function_of(definition, function)


def function_of(definition: Any, like: Any) -> Any:
    """A graph as a concrete function with the inputs and outputs of another, by their names."""
    import tensorflow as tf

    wrapped = tf.compat.v1.wrap_function(lambda: tf.import_graph_def(definition, name=""), [])
    tensors = [[wrapped.graph.as_graph_element(one.name) for one in ends] for ends in (like.inputs, like.outputs)]
    return wrapped.prune(*tensors)
