"""Loops of Python over the elements of a tensor, which a graph cannot go through as eager code does.

`for row in x` alone becomes a loop of the graph, but a list that it fills is lost behind it. A comprehension, `zip` and
`enumerate` go through nothing that is not known while the step is traced.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from flatout.source.editing.dataflow import called_name, names_in
from flatout.source.editing.graph_fit import Obstacle, every
from flatout.source.editing.python_values import has_text_key
from flatout.source.editing.step_arguments import Surroundings
from flatout.source.editing.step_split import grown

_AROUND = {"enumerate", "zip", "tqdm", "trange", "iter", "list", "reversed"}
"""Functions of Python, and of progress bars, that hand on what they are given."""
_DATASETS = ("tensorflow.data.", "tensorflow.keras.utils.", "keras.utils.", "tensorflow_datasets.")
_DEEP = 4
_TENSORS = re.compile(
    r"tensorflow\.(math\.\w+|reduce_\w+|abs|argmax|argmin|argsort|boolean_mask|cast|clip_by_value|concat|constant"
    r"|convert_to_tensor|exp|expand_dims|fill|gather|gather_nd|identity|matmul|maximum|minimum|nn\.(log_)?softmax"
    r"|nn\.relu|one_hot|ones|ones_like|range|reshape|sort|sqrt|square|squeeze|stack|stop_gradient|tile|transpose"
    r"|where|zeros|zeros_like)$"
)
"""Operations that give one tensor."""


def obstacle(around: Surroundings, body: Sequence[ast.stmt], given: Sequence[str]) -> Obstacle | None:
    """The first such loop in the statements of a step, over one of its arguments or over what an operation gives."""
    tensors = {name for name in given if _is_element(around, name) and not _is_structure(body, name)}
    tensors |= set(_computed(around, body))
    for node in every(body):
        gone_through = [node.iter] if isinstance(node, (ast.For, ast.comprehension)) else []
        for source in gone_through:
            found = sorted(tensors & set(_handed_on(source)))
            lost = isinstance(node, ast.comprehension) or _fills(node)
            if _is_tensor(around, source) and lost:
                found = [ast.unparse(source)[:60]]
            if found and (lost or isinstance(source, ast.Call)):
                return Obstacle(source.lineno, f"goes through the elements of {found[0]} in Python")
    return None


def _computed(around: Surroundings, body: Sequence[ast.stmt]) -> Iterator[str]:
    """Names that the step binds to nothing but what operations give."""
    bound: dict[str, list[ast.expr]] = {}
    plain: set[int] = set()
    for node in every(body):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            bound.setdefault(node.targets[0].id, []).append(node.value)
            plain.add(id(node.targets[0]))
    stored = (node for node in every(body) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    others = {node.id for node in stored if id(node) not in plain}
    for name, values in bound.items():
        if name not in others and all(_is_tensor(around, value) for value in values):
            yield name


def _is_tensor(around: Surroundings, value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and _TENSORS.match(around.fit.dotted(value.func)) is not None


def _fills(loop: ast.AST) -> bool:
    return isinstance(loop, ast.For) and any(True for inner in loop.body for _ in grown(inner))


def _handed_on(source: ast.expr) -> Iterator[str]:
    """`x` and `y` of `zip(x, y)`."""
    if isinstance(source, ast.Name):
        yield source.id
    elif isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.func.id in _AROUND:
        for value in source.args:
            yield from _handed_on(value)


def _is_structure(body: Sequence[ast.stmt], name: str) -> bool:
    """Whether it may be a dictionary of tensors: `batch["rows"]`, `batch[key]`, `batch.items()`."""
    for node in every(body):
        holder = node.value if isinstance(node, (ast.Subscript, ast.Attribute)) else None
        if not isinstance(holder, ast.Name) or holder.id != name:
            continue
        if isinstance(node, ast.Attribute) and node.attr in ("items", "keys", "values", "get"):
            return True
        if has_text_key(node) or (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name)):
            return True
    return False


def _is_element(around: Surroundings, name: str) -> bool:
    """Whether a loop around the step takes a name from a dataset."""
    for loop in around.loops:
        if not isinstance(loop, ast.For) or name not in names_in(loop.target):
            continue
        return any(_is_dataset(around, source, _DEEP) for source in _elements(loop.iter, loop.target, name))
    return False


def _elements(source: ast.expr, target: ast.expr, name: str) -> Iterator[ast.expr]:
    """What a loop takes a name from: `ds` of `for step, (x, y) in enumerate(ds)`."""
    if not isinstance(source, ast.Call) or called_name(source.func) not in _AROUND:
        yield source
        return
    parts = target.elts if isinstance(target, ast.Tuple) else []
    if called_name(source.func) == "enumerate":
        if len(parts) == 2 and name in names_in(parts[1]):
            yield from _elements(source.args[0], parts[1], name)
    elif called_name(source.func) == "zip":
        for part, value in zip(parts, source.args, strict=False):
            if name in names_in(part):
                yield from _elements(value, part, name)
    elif source.args:
        yield from _elements(source.args[0], target, name)


def _is_dataset(around: Surroundings, source: ast.expr, deep: int) -> bool:
    """`tf.data.Dataset.range(9).batch(3)`, a name that is bound to one, or what is made of that: `ds.take(2)`."""
    if deep <= 0:
        return False
    if around.fit.dotted(source).startswith(_DATASETS):
        return True
    if isinstance(source, ast.Call):
        return _is_dataset(around, source.func, deep)
    if isinstance(source, ast.Attribute):
        return _is_dataset(around, source.value, deep)
    if isinstance(source, ast.Name):
        return any(_is_dataset(around, value, deep - 1) for value in around.bound_to(source.id))
    return False
