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
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    return convert_variables_to_constants_v2(concrete(subject, batch, flavour))
