"""Opens models of Keras 3 and Keras 2, from files or in memory, as functions of tensors.

Keras 2 is the package `tf_keras`, and beside TensorFlow 2.15 and older the package `keras`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from flatout.model.errors import ModelRefused, ModelUnusable
from flatout.subject import trust
from flatout.subject.original import DeclaredInput, Original

UNKNOWN = re.compile(r"(?:Could not locate \w+|Unknown (?:layer|object|\w+ function):) '?([\w.>]+)'?")
"""How Keras says that it does not know a class or function."""


def open_file(path: Path, trusted: bool, imports: Sequence[str]) -> Original:
    reopen = {"how": "file", "path": str(path.resolve()), "trust": trusted, "imports": list(imports)}
    return wrap_model(load_file(path, trusted, imports), reopen)


def load_file(path: Path, trusted: bool, imports: Sequence[str] = ()) -> Any:
    """Load a model file with the Keras that wrote it, after checking its description for code."""
    with open(path, "rb") as stream:
        beginning = stream.read(8)
    if beginning.startswith(b"PK"):
        config, version = trust.keras_archive(path)
    elif beginning.startswith(b"\x89HDF"):
        config, version = trust.h5_config(path)
    else:
        raise ModelRefused(
            f"{path} is neither a .keras file nor an HDF5 file. Save the model with `model.save('name.keras')`."
        )
    keras = _package(version)
    trust.check_layers(config, path, trusted, imports)
    try:
        return keras.models.load_model(
            path, compile=False, safe_mode=not trusted, custom_objects=trust.objects_of(imports)
        )
    except Exception as error:
        if unknown := UNKNOWN.search(str(error)):
            raise ModelRefused(
                f"{path} uses {unknown[1]}, which is not part of Keras. Name the module that defines it with "
                "--import MODULE (it is run), or give a function that builds the model: `module:function`."
            ) from error
        reason = " ".join(str(error).split())[:400]
        raise ModelRefused(
            f"{path} could not be opened by Keras {keras.__version__}: {reason}. Name the module of your own classes "
            "with --import MODULE, or give a function that builds the model as `module:function`."
        ) from error


def _package(version: str) -> Any:
    if version.startswith("2."):
        with contextlib.suppress(ImportError):
            import tf_keras

            return tf_keras
    import keras

    return keras


def wrap_model(model: Any, reopen: dict[str, Any]) -> Original:
    package = _package_of(model)
    if package is None:
        raise ModelUnusable(
            f"A Keras model was expected, not {type(model).__module__}.{type(model).__name__}. Give a SavedModel "
            "by its directory."
        )

    def call(inputs: Sequence[Any]) -> Sequence[Any]:
        return flatten_outputs(model, model(pack_inputs(model, inputs), training=False))

    return Original(
        kind="tf_keras" if _is_keras_2(package) else "keras",
        call=call,
        inputs=declared_inputs(model),
        output_names=lambda count: _output_names(model, count),
        variables=[
            variable if _is_keras_2(package) else getattr(variable, "value", variable) for variable in model.variables
        ],
        owner=model,
        reopen=reopen,
        unrolled=lambda: _unrolled(model),
    )


def _package_of(model: Any) -> Any:
    import keras

    if isinstance(model, keras.Model):
        return keras
    with contextlib.suppress(ImportError):
        import tf_keras

        if isinstance(model, tf_keras.Model):
            return tf_keras
    return None


def _is_keras_2(package: Any) -> bool:
    return str(package.__version__).startswith("2.")


def declared_inputs(model: Any) -> tuple[DeclaredInput, ...] | None:
    try:
        tensors = model.inputs
    except (AttributeError, ValueError):
        return None
    if not tensors:
        return None
    names = getattr(model, "input_names", None) or [tensor.name for tensor in tensors]
    return tuple(
        DeclaredInput(name, dtype_name(tensor.dtype), tuple(tensor.shape))
        for name, tensor in zip(plain_names(names), tensors, strict=False)
    )


def dtype_name(dtype: Any) -> str:
    name = getattr(dtype, "name", None) or str(dtype)
    return "str" if name == "string" else name


def plain_names(names: Sequence[str]) -> list[str]:
    """Names that every format accepts, no two of them alike: one that was plain before keeps its own."""
    made: list[str] = []
    for i, name in enumerate(names):
        plain, others = _plain_name(name, i), {*made, *(str(one) for one in names[i + 1 :])}
        while plain in others and (plain != name or plain in made):
            plain = f"{plain}_{i}"
        made.append(plain)
    return made


def _plain_name(name: str, position: int) -> str:
    kept = "".join(c if c.isalnum() or c == "_" else "_" for c in str(name).partition(":")[0]).strip("_")
    return kept if kept and not kept[0].isdigit() else f"input_{position}"


def pack_inputs(model: Any, inputs: Sequence[Any]) -> Any:
    """The inputs in the structure that the model was built with."""
    structure = getattr(model, "_inputs_struct", None)
    if structure is None:  # a lone input is a symbolic tensor, which has no truth value
        structure = getattr(model, "_nested_inputs", None)
    if structure is None:
        return inputs[0] if len(inputs) == 1 else list(inputs)
    return _tree(model).pack_sequence_as(structure, list(inputs))


def flatten_outputs(model: Any, outputs: Any) -> list[Any]:
    return list(_tree(model).flatten(outputs))


def _tree(model: Any) -> Any:
    """Keras 3 and Keras 2 flatten nested inputs and outputs in different orders."""
    import tensorflow as tf

    package = _package_of(model)
    return tf.nest if package is None or _is_keras_2(package) else package.tree


def _output_names(model: Any, count: int) -> Sequence[str]:
    """No two alike: Keras names the outputs of a layer that has several after the layer, and a signature is by name."""
    names = list(getattr(model, "output_names", None) or [])
    if len(names) != count:
        return [f"output_{i}" for i in range(count)]
    made: list[str] = []
    for i, name in enumerate(names):
        while name in made or (name in names[i + 1 :] and name != names[i]):
            name = f"{name}_{i}"
        made.append(name)
    return made


@contextlib.contextmanager
def _unrolled(model: Any) -> Iterator[bool]:
    """Unroll recurrent layers within the context: the layers read `unroll` at each trace."""
    layers = [
        layer
        for layer in _all_layers(model)
        if hasattr(layer, "unroll") and not layer.unroll and not getattr(layer, "stateful", False)
    ]
    for layer in layers:
        layer.unroll = True
    try:
        yield bool(layers)
    finally:
        for layer in layers:
            layer.unroll = False


def _all_layers(model: Any) -> list[Any]:
    found = list(model._flatten_layers()) if hasattr(model, "_flatten_layers") else list(model.layers)
    for layer in list(found):
        found += [getattr(layer, name) for name in ("forward_layer", "backward_layer") if hasattr(layer, name)]
    return list({id(layer): layer for layer in found}.values())
