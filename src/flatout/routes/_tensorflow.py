"""What the routes through TensorFlow share: SavedModels written, opened and looked into."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from flatout.routes._route import Inside
from flatout.subject.subject import Subject
from flatout.subject.writing import FEW

FOLDER = "saved_model"
HEAVY = {
    "Conv1D", "Conv2D", "Conv3D", "DepthwiseConv2dNative", "Conv2DBackpropInput", "MatMul", "BatchMatMul",
    "BatchMatMulV2", "BatchMatMulV3", "Einsum", "XlaDotV2", "CudnnRNN", "CudnnRNNV3",
}  # fmt: skip


def save_frozen(subject: Subject, directory: Path, **options: Any) -> None:
    """A SavedModel whose weights are constants of its graph: TensorFlow folds and fuses them at load."""
    import tensorflow as tf

    from flatout.subject import graph

    batch = None if subject.batching == "dynamic" else subject.batches[0]
    frozen = graph.frozen(subject, batch)
    specifications = graph.specifications(subject, batch)
    names = [one.name for one in subject.outputs]
    module = tf.Module()
    module.serve = tf.function(lambda *inputs: tuple(tf.nest.flatten(frozen(*inputs))), autograph=False, **options)
    module.serve.get_concrete_function(*specifications)
    signature = tf.function(lambda *inputs: dict(zip(names, module.serve(*inputs), strict=True)), autograph=False)
    tf.saved_model.save(
        module,
        str(directory / FOLDER),
        signatures={"serving_default": signature.get_concrete_function(*specifications)},
    )


def inspect_saved(directory: Path, precision_known: bool = True) -> Inside:
    """Weights are variables of the checkpoint and constants of the functions."""
    import tensorflow as tf
    from tensorflow.core.protobuf import saved_model_pb2

    folder = directory / FOLDER
    message = saved_model_pb2.SavedModel()
    message.ParseFromString((folder / "saved_model.pb").read_bytes())
    graph = message.meta_graphs[0].graph_def
    # Constants that functions share stand in the graph itself.
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    sizes = [_constant(node) for node in nodes if node.op == "Const"]
    index = folder / "variables" / "variables"
    if index.with_suffix(".index").exists():
        reader = tf.train.load_checkpoint(str(index))
        types = reader.get_variable_to_dtype_map()
        sizes += [
            (int(np.prod(shape, dtype=np.int64)), types[name].size)
            for name, shape in reader.get_variable_to_shape_map().items()
            if not name.startswith(("save_counter", "_CHECKPOINTABLE"))
        ]
    sizes = [(count, width) for count, width in sizes if count > FEW]
    computes: dict[str, int] = {}
    for node in nodes:
        if node.op in HEAVY and precision_known:
            name = tf.dtypes.as_dtype(node.attr["T"].type).name
            computes[name] = computes.get(name, 0) + 1
    return Inside(sum(count for count, _ in sizes), sum(count * width for count, width in sizes), computes)


def _constant(node: Any) -> tuple[int, int]:
    import tensorflow as tf

    value = node.attr["value"].tensor
    count = int(np.prod([dimension.size for dimension in value.tensor_shape.dim], dtype=np.int64))
    return count, tf.dtypes.as_dtype(value.dtype).size


def source(before: str = "", options: str = "") -> str:
    before = before and f"\n{before}\n"
    return f'''\
from pathlib import Path

import tensorflow as tf
{before}

def load(directory):
    """A function from a list of arrays to a list of arrays."""
    model = tf.saved_model.load(str(Path(directory) / "{FOLDER}"))
    function = tf.function(lambda *inputs: model.serve(*inputs), autograph=False{options})

    def run(inputs):
        return [output.numpy() for output in function(*[tf.constant(array) for array in inputs])]

    return run
'''
