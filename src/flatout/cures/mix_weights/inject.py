"""`mix-weights` in a running program: `get_weights` and `set_weights` go straight to the variables."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from flatout.cures._spec import Hooks
from flatout.observe.injection import Injection
from flatout.observe.private_names import patch


def on_keras(injection: Injection, module: ModuleType) -> None:
    from tensorflow.python.eager import context
    from tensorflow.python.ops import gen_resource_variable_ops, resource_variable_ops

    eager, plain = context.executing_eagerly, resource_variable_ops.ResourceVariable

    def variables_of(layer: Any) -> list[Any] | None:
        """The variables of TensorFlow behind those of Keras; None where one is not made yet, or is spread out."""
        found = [getattr(variable, "_value", None) for variable in layer.weights]
        return found if found and eager() and all(type(value) is plain for value in found) else None

    def wrap_get(original: Any) -> Any:
        def get_weights(self: Any) -> Any:
            variables = variables_of(self)
            if variables is None:
                return original(self)
            read = gen_resource_variable_ops.read_variable_op
            values = [read(variable.handle, variable.dtype).numpy() for variable in variables]
            injection.changed("get_weights reads the variables directly")
            return values

        return get_weights

    def wrap_set(original: Any) -> Any:
        def set_weights(self: Any, weights: Any) -> Any:
            variables = variables_of(self)
            if variables is None or not _fits(variables, weights):
                return original(self, weights)
            import tensorflow as tf

            assign = gen_resource_variable_ops.assign_variable_op
            values = [tf.constant(value, variable.dtype) for value, variable in zip(weights, variables, strict=True)]
            for variable, value in zip(variables, values, strict=True):
                assign(variable.handle, value)
            injection.changed("set_weights writes the variables directly")
            return None

        return set_weights

    patch("get-weights", wrap_get)
    patch("set-weights", wrap_set)


def _fits(variables: list[Any], weights: Any) -> bool:
    """Whether these are arrays of the right shapes and of a kind that Keras would cast alike."""
    import numpy as np

    return (
        isinstance(weights, (list, tuple))
        and len(weights) == len(variables)
        and all(
            isinstance(value, np.ndarray)
            and value.dtype.kind == np.dtype(variable.dtype.as_numpy_dtype).kind
            and value.shape == tuple(variable.shape)
            for value, variable in zip(weights, variables, strict=True)
        )
    )


HOOKS = Hooks(keras=on_keras)
