"""TensorFlow itself, from a SavedModel that TF Serving runs as well: as it is, frozen, compiled, or in bfloat16."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from flatout.environment.machine import cpu_flags, has_gpu
from flatout.model.case import Equivalence
from flatout.routes._route import Contents, End, Precision, Route, Setting
from flatout.subject import FEW_ELEMENTS, Subject

FOLDER = "saved_model"
HEAVY = {
    "Conv1D", "Conv2D", "Conv3D", "DepthwiseConv2dNative", "Conv2DBackpropInput", "MatMul", "BatchMatMul",
    "BatchMatMulV2", "BatchMatMulV3", "Einsum", "XlaDotV2", "CudnnRNN", "CudnnRNNV3",
}  # fmt: skip
LARGEST_GRAPH = 1_900_000_000
"""A graph file cannot be larger than 2 GB."""
NOT_COMPILED_BY_XLA = {
    "LookupTableFindV2", "StringSplitV2", "RegexReplace", "DecodeJpeg", "Unique", "Where", "PyFunc",
}  # fmt: skip
IN_BFLOAT16 = '''
from tensorflow.python.eager import context


def in_bfloat16(function):
    """TensorFlow's public option for this holds for all models of the process. Here it holds for these calls alone."""
    eager = context.context()
    config = tf.compat.v1.ConfigProto.FromString(eager.function_call_options.config_proto_serialized)
    config.graph_options.rewrite_options.auto_mixed_precision_onednn_bfloat16 = 1  # on
    reduced = context.FunctionCallOptions(config_proto=config)

    def call(*tensors):
        usual = eager.function_call_options  # of this thread
        eager.function_call_options = reduced
        try:
            return function(*tensors)
        finally:
            eager.function_call_options = usual

    return call
'''


class Function(Route):
    """The model as a `tf.function`, from a SavedModel.

    This is what TF Serving runs. All other routes are measured against it.
    """

    name = "tf-function"
    family = "TensorFlow"
    format = "SavedModel"
    precision: ClassVar[Precision] = "float32"
    equivalence: ClassVar[Equivalence] = "exact"
    order = 0
    takes_core = False

    def convert(self, subject: Subject, directory: Path) -> None:
        shutil.copytree(subject.directory / "saved_model", directory / FOLDER)

    def inspect(self, directory: Path) -> Contents:
        return inspect_saved_model(directory)

    def ends(self, directory: Path) -> tuple[Sequence[End], Sequence[End]]:
        return _signature_ends(directory / FOLDER)

    def loader(self, setting: Setting, batch: int) -> str:
        return loader_source()


class Frozen(Function):
    """The graph with its weights as constants, so that TensorFlow's own optimizer folds and fuses them.

    Batch normalization is folded into the convolution before it; bias and activation become one kernel. The result is
    still a SavedModel for TF Serving.
    """

    name = "tf-frozen"
    equivalence: ClassVar[Equivalence] = "reassociated"
    order = 1
    takes_core = True
    keeps_conversion = True

    def skip_reason(self, subject: Subject) -> str | None:
        if subject.parameter_bytes > LARGEST_GRAPH:
            return "the weights do not fit into a graph file of 2 GB"
        return None

    def convert(self, subject: Subject, directory: Path) -> None:
        save_frozen(subject, directory)


class Xla(Function):
    """The model compiled by XLA at its first call, as a SavedModel.

    Helps where matrix products are surrounded by many small operations. On a CPU, depthwise convolutions become many
    times slower.
    """

    name = "tf-xla"
    equivalence = "reassociated"
    order = 1
    takes_core = True

    def skip_reason(self, subject: Subject) -> str | None:
        if "DepthwiseConv2dNative" in subject.ops and not has_gpu():
            return "XLA runs depthwise convolutions on a CPU many times slower"
        unsupported = sorted(NOT_COMPILED_BY_XLA & set(subject.ops))
        return f"XLA cannot compile {', '.join(unsupported)}" if unsupported else None

    def loader(self, setting: Setting, batch: int) -> str:
        return loader_source(options=", jit_compile=True")


class Bfloat16(Frozen):
    """The frozen graph with matrix products and convolutions in bfloat16, rewritten by TensorFlow at load.

    Helps where the processor multiplies bfloat16 (AMX, AVX512-BF16); elsewhere it is emulated. The weights on disk stay
    float32.
    """

    name = "tf-bf16"
    precision = "bfloat16"
    equivalence = "precision"

    def skip_reason(self, subject: Subject) -> str | None:
        if has_gpu():
            return "TensorFlow's rewrite to bfloat16 is for CPUs"
        if not cpu_flags() & {"amx_bf16", "avx512_bf16", "bf16"}:
            return "this processor has no bfloat16 arithmetic: it would be emulated"
        return super().skip_reason(subject)

    def inspect(self, directory: Path) -> Contents:
        return inspect_saved_model(directory, read_types=False)

    def loader(self, setting: Setting, batch: int) -> str:
        return loader_source(before=IN_BFLOAT16, around="in_bfloat16")


def save_frozen(subject: Subject, directory: Path, **options: Any) -> None:
    """Write a SavedModel whose weights are constants of its graph: TensorFlow folds and fuses them at load."""
    import tensorflow as tf

    from flatout.subject import graph

    batch = None if subject.batching == "dynamic" else subject.batches[0]
    frozen = graph.frozen(subject, batch)
    specifications = graph.specifications(subject, batch)
    names = [output.name for output in subject.outputs]
    module = tf.Module()
    module.serve = tf.function(lambda *inputs: tuple(tf.nest.flatten(frozen(*inputs))), autograph=False, **options)
    module.serve.get_concrete_function(*specifications)
    signature = tf.function(lambda *inputs: dict(zip(names, module.serve(*inputs), strict=True)), autograph=False)
    tf.saved_model.save(
        module,
        str(directory / FOLDER),
        signatures={"serving_default": signature.get_concrete_function(*specifications)},
    )


def inspect_saved_model(directory: Path, read_types: bool = True) -> Contents:
    """Weights are the variables of the checkpoint and the constants of the functions.

    `read_types`: False where TensorFlow changes the types at load, so that the file does not show them.
    """
    import tensorflow as tf
    from tensorflow.core.protobuf import saved_model_pb2

    folder = directory / FOLDER
    message = saved_model_pb2.SavedModel()
    message.ParseFromString((folder / "saved_model.pb").read_bytes())
    graph = message.meta_graphs[0].graph_def
    # Constants that several functions share are nodes of the outer graph.
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    sizes = [_constant_size(node) for node in nodes if node.op == "Const"]
    sizes += _variable_sizes(folder / "variables" / "variables")
    sizes = [(count, width) for count, width in sizes if count > FEW_ELEMENTS]
    computes: dict[str, int] = {}
    for node in nodes:
        if node.op in HEAVY and read_types:
            name = tf.dtypes.as_dtype(node.attr["T"].type).name
            computes[name] = computes.get(name, 0) + 1
    return Contents(sum(count for count, _ in sizes), sum(count * width for count, width in sizes), computes)


def _signature_ends(folder: Path) -> tuple[list[End], list[End]]:
    """Of the signature that servers use. It has names and no order."""
    from tensorflow.core.protobuf import saved_model_pb2

    message = saved_model_pb2.SavedModel()
    message.ParseFromString((folder / "saved_model.pb").read_bytes())
    signature = message.meta_graphs[0].signature_def["serving_default"]
    return _ends(signature.inputs), _ends(signature.outputs)


def _ends(named: Mapping[str, Any]) -> list[End]:
    import tensorflow as tf

    found = []
    for name in sorted(named):
        dtype = tf.dtypes.as_dtype(named[name].dtype)
        lengths = [one.size for one in named[name].tensor_shape.dim]
        shape = tuple(None if length < 0 else int(length) for length in lengths)
        found.append(End(name, "str" if dtype == tf.string else dtype.name, shape))
    return found


def _variable_sizes(checkpoint: Path) -> Iterator[tuple[int, int]]:
    """Elements and bytes per element of each variable."""
    import tensorflow as tf

    if not checkpoint.with_suffix(".index").exists():
        return
    reader = tf.train.load_checkpoint(str(checkpoint))
    types = reader.get_variable_to_dtype_map()
    for name, shape in reader.get_variable_to_shape_map().items():
        if not name.startswith(("save_counter", "_CHECKPOINTABLE")):
            yield int(np.prod(shape, dtype=np.int64)), types[name].size


def _constant_size(node: Any) -> tuple[int, int]:
    """Elements and bytes per element."""
    import tensorflow as tf

    value = node.attr["value"].tensor
    count = int(np.prod([dimension.size for dimension in value.tensor_shape.dim], dtype=np.int64))
    return count, tf.dtypes.as_dtype(value.dtype).size


def loader_source(before: str = "", options: str = "", around: str = "") -> str:
    """`around`: a function of `before` that is given the model's function and returns the one that is called."""
    function = f"tf.function(lambda *inputs: model.serve(*inputs), autograph=False{options})"
    if around:
        function = f"{around}({function})"
    return f'''\
from pathlib import Path

import tensorflow as tf
{before}

def load(directory):
    """A function from a list of arrays to a list of arrays."""
    model = tf.saved_model.load(str(Path(directory) / "{FOLDER}"))
    function = {function}

    def run(inputs):
        return [output.numpy() for output in function(*[tf.constant(array) for array in inputs])]

    return run
'''


ROUTES = (Function(), Frozen(), Xla(), Bfloat16())
