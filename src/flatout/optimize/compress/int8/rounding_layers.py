"""Keras layers that compute in float as int8 would, so that a model can be trained: rounding with a straight-through
gradient.

Weights: symmetric, one scale per output channel, always the largest weight over 127, as LiteRT and ONNX Runtime store
them. Activations: one scale and zero point per tensor, from ranges that are moving averages of the values seen, or
learned. Where the range is fixed, values are rounded by TensorFlow's own fake-quant operation, which converters
recognize.

The layer classes are made by functions, at their first use, because this module is imported without Keras. A saved
model with these layers loads after `register()`.
"""

from __future__ import annotations

import functools
from typing import Any

KERNEL_AXES = {
    **{f"Conv{rank}D": (-1,) for rank in (1, 2, 3)},
    **{f"Conv{rank}DTranspose": (-2,) for rank in (1, 2, 3)},
    **{f"DepthwiseConv{rank}D": (-2, -1) for rank in (1, 2)},
    "Dense": (-1,),
}
"""Layers whose kernel is rounded, and the axes of the kernel that have scales of their own."""


def register() -> None:
    """Make the layer classes known to Keras, so that a saved model with them can be loaded."""
    rounded_weights()
    rounded_values()


def is_rounded_weights(layer: Any) -> bool:
    return isinstance(layer, rounded_weights())


def is_rounded_values(layer: Any) -> bool:
    return isinstance(layer, rounded_values())


def round_kernel(kernel: Any, axes: tuple[int, ...]) -> Any:
    """The nearest values that int8 can hold, one scale per position along `axes`; straight-through gradient."""
    from keras import ops

    others = tuple(axis for axis in range(len(kernel.shape)) if axis - len(kernel.shape) not in axes)
    scale = ops.maximum(ops.max(ops.abs(kernel), axis=others, keepdims=True), 1e-8) / 127.0
    rounded = ops.round(kernel / ops.stop_gradient(scale)) * ops.stop_gradient(scale)
    return kernel + ops.stop_gradient(rounded - kernel)


def round_values(values: Any, low: Any, high: Any) -> Any:
    """The nearest of 256 levels between two bounds, one level being zero.

    Inside the bounds the gradient goes to the values, outside to the bounds.
    """
    from keras import ops

    scale = (high - low) / 255.0
    zero = ops.round(-low / scale)
    first = low + ops.stop_gradient(-zero * scale - low)
    last = high + ops.stop_gradient((255.0 - zero) * scale - high)
    inside = ops.minimum(ops.maximum(values, first), last)
    rounded = ops.round((inside - first) / scale) * scale + first
    return inside + ops.stop_gradient(rounded - inside)


@functools.cache
def rounded_weights() -> Any:
    """The class `RoundedWeights`."""
    import keras
    from keras import ops

    @keras.saving.register_keras_serializable(package="flatout")
    class RoundedWeights(keras.layers.Wrapper):  # type: ignore[misc]
        """A layer whose kernel is rounded to int8 at each call.

        While a model is trained, `norm` is the batch norm that will be folded into the layer. Folding multiplies a
        channel and its scale by the same number, so that the kernel is rounded alike before and after.
        """

        enabled = True

        def __init__(self, layer: Any, norm: Any = None, **keywords: Any) -> None:
            super().__init__(layer, **keywords)
            self.norm = keras.saving.deserialize_keras_object(norm) if isinstance(norm, dict) else norm

        def build(self, input_shape: Any = None) -> None:
            super().build(input_shape)
            if self.norm is not None and not self.norm.built:
                self.norm.build(self.layer.compute_output_shape(input_shape))

        @property
        def axes(self) -> tuple[int, ...]:
            return KERNEL_AXES[type(self.layer).__name__]

        def call(self, inputs: Any, training: bool | None = None) -> Any:
            outputs = self._rounded(inputs) if self.enabled else self.layer(inputs)
            return outputs if self.norm is None else self.norm(outputs, training=training)

        def _rounded(self, inputs: Any) -> Any:
            kernel = self.layer.kernel
            groups = (self.layer.trainable_variables, self.layer.non_trainable_variables)
            trainable, others = (
                [round_kernel(ops.convert_to_tensor(v), self.axes) if v is kernel else v for v in group]
                for group in groups
            )
            outputs, _ = self.layer.stateless_call(trainable, others, inputs)
            return outputs

        def compute_output_shape(self, input_shape: Any) -> Any:
            return self.layer.compute_output_shape(input_shape)

        def served(self) -> list[Any]:
            """The weights of the layer, its kernel rounded for good."""
            kernel = self.layer.kernel
            return [
                ops.convert_to_numpy(round_kernel(ops.convert_to_tensor(v), self.axes) if v is kernel else v)
                for v in self.layer.weights
            ]

        def get_config(self) -> dict[str, Any]:
            norm = None if self.norm is None else keras.saving.serialize_keras_object(self.norm)
            return {**super().get_config(), "norm": norm}

    return RoundedWeights


@functools.cache
def rounded_values() -> Any:
    """The class `RoundedValues`."""
    import keras
    from keras import ops

    @keras.saving.register_keras_serializable(package="flatout")
    class RoundedValues(keras.layers.Layer):  # type: ignore[misc]
        """Values rounded to 256 levels between two bounds.

        Probabilities that are outputs of the model (`answers`) are not rounded during training: zero has no logarithm,
        and the loss would ignore the samples from which there is most to learn.
        """

        enabled = True
        calibrating = False

        def __init__(
            self,
            bounds: tuple[float, float] | None = None,
            learned: bool = False,
            momentum: float = 0.99,
            answers: bool = False,
            **keywords: Any,
        ) -> None:
            super().__init__(**keywords)
            self.bounds = None if bounds is None else tuple(bounds)
            self.learned, self.momentum, self.answers = learned, momentum, answers

        def build(self, input_shape: Any) -> None:
            first, last = self.bounds or (0.0, 0.0)
            trained = self.learned and self.bounds is None
            self.low = self.add_weight(
                shape=(), initializer=keras.initializers.Constant(first), name="low", trainable=trained, dtype="float32"
            )
            self.high = self.add_weight(
                shape=(), initializer=keras.initializers.Constant(last), name="high", trainable=trained, dtype="float32"
            )
            self.seen = 0

        def call(self, inputs: Any, training: bool | None = None) -> Any:
            if self.calibrating:  # eager, while ranges are found
                _update_range(self, inputs)
            if not self.enabled or (training and self.answers):
                return inputs
            values = ops.cast(inputs, "float32")
            if training and self.bounds is None and not self.learned:
                self.low.assign(self.momentum * self.low + (1 - self.momentum) * ops.minimum(ops.min(values), 0.0))
                self.high.assign(self.momentum * self.high + (1 - self.momentum) * ops.maximum(ops.max(values), 0.0))
            if self.bounds is not None and keras.backend.backend() == "tensorflow":
                import tensorflow as tf  # constants, which every converter understands

                fixed = tf.quantization.fake_quant_with_min_max_args(values, *self.bounds, num_bits=8)
                return ops.cast(fixed, inputs.dtype)
            low = ops.minimum(ops.convert_to_tensor(self.low), 0.0)
            high = ops.maximum(ops.convert_to_tensor(self.high), low + 1e-6)
            return ops.cast(round_values(values, low, high), inputs.dtype)

        def range(self) -> tuple[float, float]:
            low = min(float(ops.convert_to_numpy(self.low)), 0.0)
            return low, max(float(ops.convert_to_numpy(self.high)), low + 1e-6)

        def compute_output_shape(self, input_shape: Any) -> Any:
            return input_shape

        def get_config(self) -> dict[str, Any]:
            config = {
                "bounds": self.bounds,
                "learned": self.learned,
                "momentum": self.momentum,
                "answers": self.answers,
            }
            return {**super().get_config(), **config}

    return RoundedValues


def _update_range(layer: Any, inputs: Any) -> None:
    """Calibration: the mean of the extremes of all batches so far. Zero is always in the range."""
    from keras import ops

    if layer.bounds is not None:
        return
    values = ops.convert_to_numpy(ops.cast(inputs, "float32"))
    layer.seen += 1
    low, high = float(ops.convert_to_numpy(layer.low)), float(ops.convert_to_numpy(layer.high))
    layer.low.assign(low + (min(float(values.min()), 0.0) - low) / layer.seen)
    layer.high.assign(high + (max(float(values.max()), 0.0) - high) / layer.seen)
