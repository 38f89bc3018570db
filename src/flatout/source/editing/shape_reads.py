"""Whether Python computes with the shapes of tensors, which may be unknown in a trace for several of them."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Mapping, Sequence

from flatout.source.editing import unseen_code
from flatout.source.editing.dataflow import called_name, reached
from flatout.source.editing.graph_fit import SHAPES_OF_NUMPY, GraphFit, fit_of
from flatout.source.side_effects import Definition

_SHAPES = {"shape", "get_shape"}
_COUNTS = {"unstack"}
"""Operations that need a known size."""
_FORWARD = ("call", "__call__", "forward")
_LIBRARIES = {
    *sys.stdlib_module_names,
    *("tensorflow", "keras", "tf_keras", "tensorflow_datasets", "tensorflow_probability", "numpy", "scipy", "sklearn"),
    *("pandas", "matplotlib", "PIL", "cv2", "tqdm", "absl", "gym", "gymnasium", "IPython", "seaborn", "imageio"),
}


def any_in(fit: GraphFit, body: Sequence[ast.stmt], others: Mapping[str, ast.Module]) -> bool:
    """Whether these statements read shapes, or a model does: in this file or in `others`, the program's other files."""
    own = {part.removesuffix(".py") for path in others for part in os.path.normpath(path).split(os.sep)}
    fits = [fit, *map(fit_of, others.values())]
    libraries = {name for one in fits for name in one.modules}
    models = [node for one in fits for name in _FORWARD for node in one.definitions.get(name, ())]

    def meant(call: ast.Call) -> Iterator[Definition]:
        return (function for one in fits for function in one.meant(call))

    nodes = [*reached(body, meant), *(inner for model in models for inner in reached(model.body, meant))]
    modules = (fit.module, *others.values())
    unseen = set().union(*map(_imported, modules)) - _LIBRARIES - own
    if unseen and unseen_code.called(nodes, modules, unseen):
        return True
    if any(isinstance(node, ast.Call) and called_name(node) in _COUNTS for node in nodes):
        return True
    if any(isinstance(node, ast.Call) and fit.dotted(node.func) in SHAPES_OF_NUMPY for node in nodes):
        return True
    read = (node.value for node in nodes if isinstance(node, ast.Attribute) and node.attr in _SHAPES)
    return any(not (isinstance(of, ast.Name) and of.id in libraries) for of in read)  # `tf.shape(x)` is a tensor


def _imported(module: ast.Module) -> set[str]:
    """The packages and modules that a file imports, by the first part of their names."""
    found: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
        elif isinstance(node, ast.ImportFrom):
            found.update(alias.name for alias in node.names)
    return found
