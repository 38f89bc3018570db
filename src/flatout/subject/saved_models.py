"""Opens a signature of a SavedModel as a function of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flatout.model.errors import ModelRefused
from flatout.subject import graph_models, trust
from flatout.subject.graph_check import unsafe_in_graph, unsafe_operations
from flatout.subject.keras_models import dtype_name, plain_names
from flatout.subject.original import DeclaredInput, Original

DEFAULT_SIGNATURE = "serving_default"


def open_directory(path: Path, signature: str | None, trusted: bool, custom: frozenset[str] = frozenset()) -> Original:
    """`custom` are operations that modules named by --import have registered."""
    import tensorflow as tf

    message = _message(path)
    trust.check_graph(unsafe_operations(message, custom), path, trusted)
    meta = graph_models.serving_graph(message)
    if len(message.meta_graphs) > 1 or not meta.HasField("object_graph_def"):  # written by TensorFlow 1
        return graph_models.open_saved_model(path, meta, lambda known: _chosen(known, path, signature))
    try:
        model = tf.saved_model.load(str(path))
    except Exception as error:
        reason = " ".join(str(error).split())[:400]
        raise ModelRefused(f"{path} could not be opened as a SavedModel: {reason}") from error
    function = _function(model, path, signature)
    declared = function.structured_input_signature[1]
    names = list(declared)
    outputs = sorted(function.structured_outputs)

    def call(inputs: Sequence[Any]) -> Sequence[Any]:
        answer = function(**dict(zip(names, inputs, strict=True)))
        return [answer[name] for name in outputs]

    return Original(
        kind="saved_model",
        call=call,
        inputs=tuple(
            DeclaredInput(
                plain,
                dtype_name(declared[name].dtype),
                _shape(declared[name]),
                any_rank=declared[name].shape.rank is None,
            )
            for plain, name in zip(plain_names(names), names, strict=True)
        ),
        output_names=lambda count: outputs,
        variables=function.variables,
        owner=model,
    )


def _shape(specification: Any) -> tuple[int | None, ...]:
    if specification.shape.rank is None:
        return (None,)
    return tuple(specification.shape.as_list())


def _function(model: Any, path: Path, wanted: str | None) -> Any:
    return model.signatures[_chosen(list(model.signatures), path, wanted)]


def _chosen(names: Sequence[str], path: Path, wanted: str | None) -> str:
    """The signature that the user wants, or the only one that there is."""
    known = [name for name in names if not name.startswith("__")]
    name = wanted or (DEFAULT_SIGNATURE if DEFAULT_SIGNATURE in known else known[0] if len(known) == 1 else "")
    if name in known:
        return name
    if not known:
        raise ModelRefused(
            f"{path} has no signature. Save it with one: tf.saved_model.save(model, path, signatures=function)."
        )
    problem = f"no signature named {wanted!r}" if wanted else "several signatures"
    raise ModelRefused(f"{path} has {problem}. Choose with --signature: {', '.join(known)}.")


def open_graph_file(path: Path, trusted: bool, custom: frozenset[str] = frozenset()) -> Original:
    """A frozen graph, after the same check as that of a SavedModel."""

    def check(definition: Any, outputs: Sequence[str]) -> None:
        trust.check_graph(unsafe_in_graph(definition, outputs, custom), path, trusted)

    return graph_models.open_file(path, check)


def registered_operations() -> frozenset[str]:
    """The names of all operations that this process knows."""
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.python.client import pywrap_tf_session

    known = op_def_pb2.OpList()
    known.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return frozenset(one.name for one in known.op)


def _message(path: Path) -> Any:
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf import saved_model_pb2

    message = saved_model_pb2.SavedModel()
    try:
        message.ParseFromString((path / "saved_model.pb").read_bytes())
    except (DecodeError, OSError) as error:
        raise ModelRefused(f"{path}/saved_model.pb cannot be read: {error}. Save the model again.") from None
    return message
