"""A Keras model as a graph of calls, and the same graph rebuilt with other layers.

Every change of a model's structure is one walk: go through the calls in order, make (or keep) the layer of each, and
call it on the new tensors. Nested models are walked through as if their layers were in the outer one, so that a channel
can be followed across the border; the result is one flat model.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from flatout.model.errors import CompressionRefused

Call = Callable[[Any, Any, tuple[Any, ...], dict[str, Any]], Any]
"""What a walk does at a call: (original operation, node, arguments, keyword arguments) → outputs."""


def refuse_keras_2(model: Any) -> None:
    """Raises CompressionRefused for a model of Keras 2."""
    import keras

    if type(model).__module__.split(".")[0] == "tf_keras" or keras.__version__.startswith("2."):
        raise CompressionRefused(
            f"{model.name} is a model of Keras 2, and compression works on Keras 3 models. "
            "Build the same layers with Keras 3 and copy the weights with set_weights."
        )


def functional(model: Any) -> Any:
    """The Functional graph of a model. Raises CompressionRefused if there is none."""
    import keras

    refuse_keras_2(model)
    if not isinstance(model, keras.Model):
        raise CompressionRefused(f"A Keras model was expected, not {type(model).__name__}.")
    if isinstance(model, keras.Sequential):
        if not model.built or getattr(model, "_functional", None) is None:
            raise CompressionRefused(
                f"The Sequential model {model.name} has no input shape yet. "
                "Give it a keras.Input first, or call model.build(shape)."
            )
        return model._functional
    if not _is_functional(model):
        raise CompressionRefused(
            f"{model.name} ({type(model).__name__}) is a subclassed model: its computation is Python code, not a graph "
            "that can be followed. Write it with the functional API, or give a functional part of it."
        )
    return model


def _is_functional(model: Any) -> bool:
    from keras.src.models.functional import Functional

    return isinstance(model, Functional) and type(model).call is Functional.call


def is_model(operation: Any) -> bool:
    import keras

    return isinstance(operation, keras.Sequential) or (isinstance(operation, keras.Model) and _is_functional(operation))


def nodes(graph: Any) -> Iterator[Any]:
    """The calls of a functional graph, each after those that it depends on."""
    for depth in sorted(graph._nodes_by_depth, reverse=True):
        for node in graph._nodes_by_depth[depth]:
            if not node.is_input:
                yield node


def walk(model: Any, inputs: list[Any], call: Call) -> list[Any]:
    """Go through all calls of a model and of the models inside it. Returns the values of its outputs."""
    from keras import tree

    graph = functional(model)
    values = {id(tensor): value for tensor, value in zip(graph.inputs, inputs, strict=True)}
    for node in nodes(graph):
        if is_model(node.operation):
            outputs = walk(node.operation, [values[id(tensor)] for tensor in node.input_tensors], call)
        else:
            arguments, keywords = node.arguments.fill_in(values)
            outputs = tree.flatten(call(node.operation, node, arguments, keywords))
        values.update((id(tensor), value) for tensor, value in zip(node.outputs, outputs, strict=True))
    return [values[id(tensor)] for tensor in graph.outputs]


def layers(model: Any) -> list[Any]:
    """All operations that are called, each once, including those of nested models."""
    found: dict[int, Any] = {}

    def collect(graph: Any) -> None:
        for node in nodes(graph):
            if is_model(node.operation):
                collect(functional(node.operation))
            else:
                found.setdefault(id(node.operation), node.operation)

    collect(functional(model))
    return list(found.values())


@dataclass(frozen=True)
class Step:
    """One call. Tensors are numbers, across nested models."""

    number: int
    operation: Any
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    shapes: tuple[tuple[int | None, ...], ...]


@dataclass(frozen=True)
class Wiring:
    """All calls of a model in order; `Rebuilt` repeats them in the same order."""

    steps: tuple[Step, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def readers(self, tensor: int) -> list[Step]:
        return [step for step in self.steps if tensor in step.inputs]

    def maker(self, tensor: int) -> Step | None:
        return next((step for step in self.steps if tensor in step.outputs), None)

    def only_reader(self, step: Step) -> Step | None:
        """The only reader of a call's only output; None if there are more, or if it is an output of the model."""
        if len(step.outputs) != 1 or step.outputs[0] in self.outputs:
            return None
        readers = self.readers(step.outputs[0])
        return readers[0] if len(readers) == 1 and readers[0].inputs.count(step.outputs[0]) == 1 else None

    def called_once(self, operation: Any) -> bool:
        return sum(step.operation is operation for step in self.steps) == 1


@dataclass(frozen=True)
class _Tensor:
    number: int


def wiring(model: Any) -> Wiring:
    from keras import tree

    counter = itertools.count()
    steps: list[Step] = []

    def call(operation: Any, node: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> list[_Tensor]:
        given = tuple(v.number for v in tree.flatten((arguments, keywords)) if isinstance(v, _Tensor))
        made = [_Tensor(next(counter)) for _ in node.outputs]
        shapes = tuple(tuple(tensor.shape) for tensor in node.outputs)
        steps.append(Step(len(steps), operation, given, tuple(one.number for one in made), shapes))
        return made

    starts = [_Tensor(next(counter)) for _ in functional(model).inputs]
    ends = walk(model, starts, call)
    return Wiring(tuple(steps), tuple(one.number for one in starts), tuple(one.number for one in ends))


class Rebuilt:
    """A model rebuilt from its calls: `make` returns the new layer for an old one, `call` may change what a call does,
    `entering` what an input becomes. `call` gets the number of the call and a function that returns the new layer."""

    def __init__(
        self,
        model: Any,
        make: Callable[[Any, dict[str, Any]], Any] | None = None,
        call: Callable[[int, Callable[[], Any], tuple[Any, ...], dict[str, Any]], Any] | None = None,
        entering: Callable[[Any, str], Any] | None = None,
    ) -> None:
        import keras
        from keras import tree

        self.layers: dict[int, Any] = {}
        """New operation by the identity of the old one."""
        self._make = make or (lambda layer, config: remake(layer, config))
        self._names: set[str] = set()
        graph = functional(model)
        starts = tree.map_structure(
            lambda tensor: keras.Input(
                batch_shape=tensor.shape, dtype=tensor.dtype, name=tensor.name, sparse=tensor.sparse
            ),
            graph._inputs_struct,
        )

        def repeat(operation: Any, node: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
            number = next(counter)
            if call is not None:
                return call(number, lambda: self.layer_of(operation), arguments, keywords)
            return self.layer_of(operation)(*arguments, **keywords)

        counter = itertools.count()

        entered = [tensor if entering is None else entering(tensor, tensor.name) for tensor in tree.flatten(starts)]
        ends = walk(model, entered, repeat)
        self.model = _as_same_kind(model, starts, tree.pack_sequence_as(graph._outputs_struct, ends))

    def layer_of(self, operation: Any) -> Any:
        if id(operation) not in self.layers:
            config = config_of(operation)
            name = config.get("name") or operation.name
            while name in self._names:  # two nested models may each have a "dense"
                name += "_1"
            self._names.add(name)
            config["name"] = name
            self.layers[id(operation)] = self._make(operation, config)
        return self.layers[id(operation)]


def _as_same_kind(model: Any, inputs: Any, outputs: Any) -> Any:
    """A model of the same class, if that can be made from inputs and outputs; otherwise a `keras.Model`."""
    import keras

    plain_list = isinstance(model, keras.Sequential) and not any(is_model(layer) for layer in model.layers)
    kind = type(model) if not isinstance(model, keras.Sequential) else keras.Model
    try:
        rebuilt = kind(inputs, outputs, name=model.name)
    except TypeError:  # a class with a constructor of its own
        rebuilt = keras.Model(inputs, outputs, name=model.name)
    if plain_list:
        listed = [
            keras.Input(batch_shape=model.inputs[0].shape, dtype=model.inputs[0].dtype, name=model.inputs[0].name)
        ]
        operations = [node.operation for node in nodes(rebuilt)]
        if all(isinstance(operation, keras.layers.Layer) for operation in operations):
            rebuilt = keras.Sequential([*listed, *operations], name=model.name)
    return rebuilt


def config_of(operation: Any) -> dict[str, Any]:
    try:
        return dict(operation.get_config())
    except NotImplementedError as error:
        raise CompressionRefused(
            f"The layer {operation.name} ({type(operation).__name__}) cannot be rebuilt: it has no get_config(). "
            "Add a get_config() that returns its constructor's arguments."
        ) from error


def remake(operation: Any, config: dict[str, Any]) -> Any:
    """A new layer like an old one."""
    import keras

    if isinstance(operation, keras.layers.Lambda):  # its config has bytecode; the function itself is available
        return keras.layers.Lambda(
            operation.function,
            output_shape=operation._output_shape,
            mask=operation.mask,
            arguments=operation.arguments,
            name=config["name"],
            dtype=operation.dtype_policy,
        )
    try:
        fresh = type(operation).from_config(config)
    except Exception as error:
        raise CompressionRefused(
            f"The layer {operation.name} ({type(operation).__name__}) cannot be rebuilt from its config: {error}. "
            "Its constructor has to accept what its get_config() returns."
        ) from error
    if hasattr(operation, "trainable"):
        fresh.trainable = operation.trainable
    return fresh


def copy_weights(pairs: list[tuple[Any, Any]], cut: Callable[[Any, Any], Any] | None = None) -> None:
    """Copy the variables of old layers into new ones; `cut` may select a part of each."""
    for old, new in pairs:
        ours, theirs = getattr(old, "variables", []), getattr(new, "variables", [])
        if len(ours) != len(theirs):
            raise CompressionRefused(
                f"The layer {old.name} ({type(old).__name__}) has {len(ours)} variables; rebuilt it has {len(theirs)}."
            )
        for before, after in zip(ours, theirs, strict=True):
            value = before.numpy() if cut is None else cut(before, before.numpy())
            if tuple(value.shape) != tuple(after.shape):
                raise CompressionRefused(
                    f"The variable {before.path} of layer {old.name} would have the shape {tuple(value.shape)}, "
                    f"but the rebuilt layer expects {tuple(after.shape)}: its use of channels is not supported."
                )
            after.assign(value)
        if theirs and hasattr(new, "finalize_state"):  # a Normalization computes with copies of its variables
            new.finalize_state()


def duplicate(model: Any) -> Any:
    """A flat copy of the model with variables of its own."""
    copy = Rebuilt(model)
    copy_weights([(layer, copy.layers[id(layer)]) for layer in layers(model)])
    return copy.model


def activation_name(layer: Any) -> str:
    """The name of the function that a layer applies to its values; "linear" where it applies none."""
    kind = type(layer).__name__
    if kind == "ReLU":
        plain = not layer.negative_slope and not layer.threshold and layer.max_value in (None, 6)
        return "relu" if plain else "leaky_relu"
    if kind == "Softmax":
        return "softmax"
    activation = getattr(layer, "activation", None)
    return getattr(activation, "__name__", "custom") if activation is not None else "linear"


def compile_like(model: Any, original: Any) -> Any:
    """Compile like the original, with a fresh optimizer of the same settings; do nothing if it was not compiled."""
    if getattr(original, "compiled", False):
        config = original.get_compile_config()
        if config:
            model.compile_from_config(config)
    return model
