"""Converts the subject to ONNX, from which ONNX Runtime, OpenVINO and TensorRT start.

The subject is converted once; the file is kept in its directory (`onnx/`) for all routes. The batch dimension stays
open where the model's is: the runtimes fix it when they load the file. Inputs and outputs keep the original's order.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from pathlib import Path
from typing import Any

from flatout.model.errors import ConversionFailed
from flatout.routes import _conversions
from flatout.routes._onnx import compiled, recurrent
from flatout.routes._onnx.graph import graphs
from flatout.routes._onnx.repair import repair
from flatout.subject import Subject, graph

OPSET = 17
"""The first opset with LayerNormalization; tf2onnx supports up to 18."""
LOOPS = ("Loop", "Scan")
BATCH = "batch"
"""The name of the open dimension."""


def onnx_file(subject: Subject) -> Path:
    """The subject's ONNX file, converted at the first call. Other processes that call this meanwhile wait for it."""
    kept = subject.directory / "onnx" / "model.onnx"
    kept.parent.mkdir(exist_ok=True)
    failed, made = kept.with_name("failed.txt"), kept.with_name("made")
    made.mkdir(exist_ok=True)
    with open(kept.with_name("lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if failed.exists():
            raise ConversionFailed(failed.read_text(encoding="utf-8"))
        if not kept.exists():
            try:
                _conversions.kept("onnx", subject, made, lambda: save(_convert(subject), made / kept.name))
                os.replace(made / kept.name, kept)
            except Exception as error:
                failed.write_text(f"{type(error).__name__}: {error}", encoding="utf-8")
                raise
    return kept


def copy_onnx_file(subject: Subject, target: Path) -> None:
    shutil.copyfile(onnx_file(subject), target)


def save(model: Any, path: Path) -> None:
    import onnx

    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path.with_suffix(".part"))
    os.replace(path.with_suffix(".part"), path)


def _convert(subject: Subject) -> Any:
    """The model as it is; where that fails or leaves a loop, the model with unrolled recurrent layers."""
    if "unrolled" not in subject.flavours:
        return _convert_flavour(subject, "saved_model")
    with contextlib.suppress(Exception):
        model = _convert_flavour(subject, "saved_model")
        if not any(node.op_type in LOOPS for node in model.graph.node):
            return model
    return _convert_flavour(subject, "unrolled")


def _convert_flavour(subject: Subject, flavour: str) -> Any:
    batch = None if subject.batching == "dynamic" else subject.batches[0]
    model = convert_function(graph.concrete(subject, batch, flavour), len(subject.inputs))
    if batch is None:
        _name_batch(model)
    return model


def convert_function(function: Any, input_count: int) -> Any:
    """The ONNX model of a concrete function with this many inputs.

    Constants that the function captured follow its own inputs. tf2onnx alone would make them inputs of the model.
    """
    import tf2onnx.tf_loader

    function = compiled.inline(function)
    inputs = [tensor.name for tensor in function.inputs[:input_count]]
    outputs = [tensor.name for tensor in function.outputs]
    definition = tf2onnx.tf_loader.from_function(function, inputs, outputs)
    recurrent.rewrite_gru_loops(definition)
    names = {name: name.partition(":")[0] for name in inputs} | {name: f"output_{i}" for i, name in enumerate(outputs)}
    model, _ = tf2onnx.convert.from_graph_def(
        definition, input_names=inputs, output_names=outputs, opset=OPSET, tensors_to_rename=names
    )
    repair(model)
    _reorder(model.graph.input, [names[name] for name in inputs])
    _reorder(model.graph.output, [names[name] for name in outputs])
    _refuse_unknown(model)
    return model


def _reorder(values: Any, names: list[str]) -> None:
    """Put inputs or outputs into the original's order."""
    ordered = sorted(values, key=lambda value: names.index(value.name))
    kept = [type(value).FromString(value.SerializeToString()) for value in ordered]
    del values[:]
    values.extend(kept)


def _name_batch(model: Any) -> None:
    """Give the open first dimension one name, by which a runtime can fix it; other shapes are inferred from it."""
    for value in model.graph.input:
        dimensions = value.type.tensor_type.shape.dim
        if dimensions and not dimensions[0].HasField("dim_value"):
            dimensions[0].dim_param = BATCH
    del model.graph.value_info[:]


def _refuse_unknown(model: Any) -> None:
    """Fail on operations that ONNX does not have: tf2onnx writes them into the file without an error."""
    import onnx

    known = {(schema.domain, schema.name) for schema in onnx.defs.get_all_schemas()}
    nodes = [node for inner in graphs(model.graph) for node in inner.node]
    unknown = sorted({node.op_type for node in nodes if (node.domain, node.op_type) not in known})
    if unknown:
        raise ConversionFailed(
            f"tf2onnx cannot express {', '.join(unknown)} in ONNX. Other routes may convert the model."
        )
