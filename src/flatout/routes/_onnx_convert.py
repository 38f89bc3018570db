"""The subject as an ONNX model: what ONNX Runtime, OpenVINO and TensorRT start from.

It is converted once and lies beside the subject (`onnx/`) for every route that asks. The batch dimension stays open
where the model's is: the runtimes close it when they load. The inputs and outputs stand in the original's order.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from pathlib import Path
from typing import Any

from flatout.model.errors import FlatoutError
from flatout.routes import _onnx_compiled, _onnx_recurrent
from flatout.routes._onnx_graph import graphs
from flatout.routes._onnx_repair import repair
from flatout.subject import graph
from flatout.subject.subject import Subject

OPSET = 17
"""The first with LayerNormalization; tf2onnx goes up to 18."""
LOOPS = ("Loop", "Scan")
BATCH = "batch"
"""The name of the open dimension."""


def of(subject: Subject) -> Path:
    """The model's file, converted if nobody has yet; who asks meanwhile, in another process, waits for it."""
    kept = subject.directory / "onnx" / "model.onnx"
    kept.parent.mkdir(exist_ok=True)
    failed = kept.with_name("failed.txt")
    with open(kept.with_name("lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if failed.exists():
            raise FlatoutError(failed.read_text(encoding="utf-8"))
        if not kept.exists():
            try:
                save(_converted(subject), kept)
            except Exception as error:
                failed.write_text(f"{type(error).__name__}: {error}", encoding="utf-8")
                raise
    return kept


def copy(subject: Subject, target: Path) -> None:
    shutil.copyfile(of(subject), target)


def save(model: Any, path: Path) -> None:
    import onnx

    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path.with_suffix(".part"))
    os.replace(path.with_suffix(".part"), path)


def _converted(subject: Subject) -> Any:
    """The model as it is; where that fails or leaves a loop, with its recurrent layers unrolled, if it can be."""
    if "unrolled" not in subject.flavours:
        return _convert(subject, "saved_model")
    with contextlib.suppress(Exception):
        model = _convert(subject, "saved_model")
        if not any(node.op_type in LOOPS for node in model.graph.node):
            return model
    return _convert(subject, "unrolled")


def _convert(subject: Subject, flavour: str) -> Any:
    batch = None if subject.batching == "dynamic" else subject.batches[0]
    model = of_function(graph.concrete(subject, batch, flavour), len(subject.inputs))
    if batch is None:
        _name_batch(model)
    return model


def of_function(function: Any, count: int) -> Any:
    """A concrete function with so many inputs of its own. Constants that it captured are inputs, too, and stand after
    them: tf2onnx by itself would ask for them at every call."""
    import tf2onnx.tf_loader

    function = _onnx_compiled.inlined(function)
    inputs = [tensor.name for tensor in function.inputs[:count]]
    outputs = [tensor.name for tensor in function.outputs]
    definition = tf2onnx.tf_loader.from_function(function, inputs, outputs)
    _onnx_recurrent.mend(definition)
    names = {name: name.partition(":")[0] for name in inputs} | {name: f"output_{i}" for i, name in enumerate(outputs)}
    model, _ = tf2onnx.convert.from_graph_def(
        definition, input_names=inputs, output_names=outputs, opset=OPSET, tensors_to_rename=names
    )
    repair(model)
    _in_order(model.graph.input, [names[name] for name in inputs])
    _in_order(model.graph.output, [names[name] for name in outputs])
    _refuse_unknown(model)
    return model


def _in_order(values: Any, names: list[str]) -> None:
    """Inputs and outputs as the original has them, whatever order the converter found."""
    ordered = sorted(values, key=lambda value: names.index(value.name))
    kept = [type(value).FromString(value.SerializeToString()) for value in ordered]
    del values[:]
    values.extend(kept)


def _name_batch(model: Any) -> None:
    """One name for the open first dimension, so that a runtime can be told its length; the rest follows from it."""
    for value in model.graph.input:
        dimensions = value.type.tensor_type.shape.dim
        if dimensions and not dimensions[0].HasField("dim_value"):
            dimensions[0].dim_param = BATCH
    del model.graph.value_info[:]


def _refuse_unknown(model: Any) -> None:
    """tf2onnx writes what it cannot convert as if ONNX had it."""
    import onnx

    known = {(schema.domain, schema.name) for schema in onnx.defs.get_all_schemas()}
    nodes = [node for inner in graphs(model.graph) for node in inner.node]
    strange = sorted({node.op_type for node in nodes if (node.domain, node.op_type) not in known})
    if strange:
        raise FlatoutError(f"tf2onnx cannot express {', '.join(strange)} in ONNX.")
