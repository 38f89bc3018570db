"""Graphs of what Keras does with one batch: metrics are set back in them, then the model's own function runs.

The function is the one that Keras has made and traced, so a graph holds the same operations on the same variables. A
graph is traced before it runs for the first time: where that fails, nothing has been trained, and Keras' own method can
do it. What fails later fails in the model's own operations, as it would without the lever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Data = tuple[Any, ...]


class BatchGraphs:
    """The graphs of one method, `train_function` or `test_function`, for all models."""

    def __init__(self, function: str) -> None:
        self.function = function
        """The attribute of a model that holds what Keras has made."""
        self._kept = f"_flatout_{function}"

    def is_ready(self, model: Any) -> bool:
        """Whether Keras has made and used the function: a model, its optimizer and its metrics have variables then."""
        own = getattr(model, self.function, None)
        if own is None or not model.built or model.run_eagerly or model._distribute_strategy is not None:
            return False
        graph = self._graph(model, own)
        if not graph.is_ready:
            used = [*model.metrics, *([model.optimizer] if self.function == "train_function" else [])]
            made = getattr(type(model), f"make_{self.function}", None)
            graph.is_ready = all(getattr(part, "built", True) for part in used) and is_of_keras(made)
        return graph.is_ready

    def traced(self, model: Any, data: Data, *, goes_on: bool = False) -> Callable[[], Any]:
        """What runs the batch and returns its logs, as tensors. Computes nothing yet; raises what tracing raises.

        `goes_on`: metrics go on from the batch before.
        """
        graph = self._graph(model, getattr(model, self.function))
        call = graph.next if goes_on else graph.call
        shape = (goes_on, _shape(data))
        if shape not in graph.shapes:
            call.get_concrete_function(data)
            graph.shapes.add(shape)

        def run() -> Any:
            if not graph.resets and not goes_on:
                model.reset_metrics()
            return call(data)

        return run

    def _graph(self, model: Any, own: Any) -> _Graph:
        # With the model, past Keras' tracking of attributes: it goes when the model goes.
        graph: _Graph | None = vars(model).get(self._kept)
        if graph is None or graph.own is not own:  # `compile` makes another function
            graph = vars(model)[self._kept] = _Graph(model, own)
        return graph


class _Graph:
    def __init__(self, model: Any, own: Any) -> None:
        import tensorflow as tf

        def one_step_on_data(data: Any) -> Any:  # Keras' own name for it
            # One argument: with and without weights of samples it is another structure, and so another trace.
            if self.resets:
                model.reset_metrics()
            return own(iter([data]))

        def next_step_on_data(data: Any) -> Any:
            return own(iter([data]))

        self.own = own
        self.is_ready = False
        self.resets = _resets_variables(model)
        self.shapes: set[Any] = set()
        self.call = tf.function(one_step_on_data, reduce_retracing=True, autograph=False)
        self.next = tf.function(next_step_on_data, reduce_retracing=True, autograph=False)


def _resets_variables(model: Any) -> bool:
    """Whether metrics are set back by Keras' own code alone, which assigns variables and does nothing else."""
    return all(map(is_of_keras, (type(model).reset_metrics, *(type(item).reset_state for item in model.metrics))))


def is_of_keras(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).startswith("keras.")


def _shape(value: Any) -> Any:
    """What makes another trace: the structure, and the shapes and types of its arrays."""
    if isinstance(value, (list, tuple)):
        return (type(value), tuple(map(_shape, value)))
    if isinstance(value, dict):
        return tuple((name, _shape(part)) for name, part in value.items())
    return value if value is None else (tuple(value.shape), value.dtype)
