"""Makes steps in plain Python and numpy (`steps`) of a stage's graph, where it consists of operations that they know.

What is made has to prove itself: on all samples and on odd ones (empty, non-ASCII and invalid strings, numbers at the
ends of their range) it has to answer exactly as TensorFlow does. Otherwise the stage stays a SavedModel.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from flatout.model.errors import Internal
from flatout.subject.graph_function import GraphFunction, Table
from flatout.subject.input_matching import numpy_type
from flatout.subject.steps import load_steps
from flatout.subject.subject import Array, Tensor, as_bytes, in_batches

ODD_STRINGS = (
    b"", b" ", "Köln".encode(), "KÖLN!".encode(), b"\xff\xfe", b"\xc3", "日本語 text".encode(), b"a\tB\nc  d ",
    b"abcde", b"nine byte", b"seventeen bytes, ", b"y" * 35, b"z" * 64, b"x" * 65, b"w" * 300, b"nowhere", b"-1",
    b"[UNK]", b"nan", b"a,b;c", b"\xe2\x80\x83wide space",
)  # fmt: skip
SIMPLE = {
    "AddV2": "add", "Add": "add", "Equal": "equal", "ExpandDims": "expand", "Greater": "greater", "Less": "less",
    "Maximum": "maximum", "Minimum": "minimum", "Mul": "multiply", "NotEqual": "not-equal", "Reshape": "reshape",
    "SelectV2": "select", "Sub": "subtract",
}  # fmt: skip
CHARACTERS = re.compile(r"(?=[\x20-\x7e]*$)\[(?!\^)(?:[^\[\]\\]|\[(?!:)|\\[^A-Za-z0-9]|\\[dwtnrfv])+\]")
"""A pattern that is one set of ASCII characters: Python's expressions and TensorFlow's mean the same by it. They do not
by `[[:alpha:]]` and `\\s`, nor by what may follow a set: `[a][^b]` takes one byte here and one character there."""

Run = Callable[[Sequence[Array]], Sequence[Array]]


class NotKnown(Internal):
    """The stage has something that the steps do not."""


@dataclass
class _Plan:
    arrays: dict[str, Any] = field(default_factory=dict)
    constants: list[tuple[int, str, bool]] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    slots: dict[str, int] = field(default_factory=dict)
    """By tensor."""

    def slot(self, tensor: str) -> int:
        return self.slots.setdefault(tensor, len(self.slots))

    def keep(self, array: Any) -> str:
        name = f"a{len(self.arrays)}"
        self.arrays[name] = array
        return name

    def step(self, op: str, node: Any, sources: Sequence[str], outputs: int = 1, **options: Any) -> None:
        targets = [self.slot(f"{node.name}:{i}") for i in range(outputs)]
        read = [self.slot(source) for source in sources]
        self.steps.append({"op": op, "with": options, "from": read, "to": targets})


def write(
    function: GraphFunction, tables: Sequence[Table], inputs: Sequence[Tensor], directory: Path, name: str
) -> None:
    """Write the stage as steps. Raises NotKnown."""
    plan = _Plan()
    nodes = {node.name: node for node in function.source.node}
    known = {table.node: table for table in tables}
    given = list(function.ends.inputs.values())
    entries = [(plan.slot(tensor), one.dtype == "str") for tensor, one in zip(given, inputs, strict=True)]
    for node in _in_order(nodes, [name.partition(":")[0] for name in function.ends.outputs.values()]):
        if f"{node.name}:0" not in given and node.name not in known:
            _add(plan, node, nodes, known)
    outputs = [plan.slot(_resolved(tensor, nodes)) for tensor in function.ends.outputs.values()]
    content = {
        "slots": len(plan.slots),
        "constants": plan.constants,
        "steps": plan.steps,
        "inputs": entries,
        "outputs": outputs,
    }
    (directory / f"{name}.json").write_text(json.dumps(content))
    np.savez_compressed(directory / f"{name}.npz", **plan.arrays)


def agrees(directory: Path, name: str, run: Run, inputs: Sequence[Tensor], samples: list[Array]) -> bool:
    """Whether the steps answer exactly as the stage itself, on the samples and on odd ones."""
    steps = load_steps(directory, name)
    feeds = [*in_batches(samples, min(32, len(samples[0]))), *odd_feeds(inputs, samples)]
    compared = 0
    for feed in feeds:
        try:
            expected = run(feed)
        except Exception:  # TensorFlow refuses such inputs
            continue
        compared += 1
        made = steps(feed)
        for mine, its in zip(made, expected, strict=True):
            if mine.dtype != its.dtype or not np.array_equal(mine, its, equal_nan=its.dtype.kind == "f"):
                return False
    return compared > 0


def odd_feeds(inputs: Sequence[Tensor], samples: list[Array]) -> list[list[Array]]:
    """Batches in which one kind of input has unusual values, and the others are samples."""
    feeds = []
    count = len(ODD_STRINGS)
    rows = [np.resize(array, (count, *array.shape[1:])) for array in samples]
    texts = [np.resize(np.array(ODD_STRINGS), array.shape) if one.dtype == "str" else array
             for one, array in zip(inputs, rows, strict=True)]  # fmt: skip
    feeds.append(texts)
    for values in ((0, 1), (-1,), (2**31 - 1,)):
        feeds.append([
            np.resize(np.array(values, numpy_type(one.dtype)), array.shape) if array.dtype.kind == "i" else array
            for one, array in zip(inputs, texts, strict=True)
        ])  # fmt: skip
    odd = np.array([0.0, -0.0, 1e30, -1e30, np.nan, np.inf, -np.inf])
    feeds.append(
        [np.resize(odd, array.shape).astype(array.dtype) if array.dtype.kind == "f" else array for array in texts]
    )
    return feeds


def _in_order(nodes: dict[str, Any], wanted: Sequence[str]) -> list[Any]:
    """The nodes that the wanted ones need, each after those that it reads."""
    order: dict[str, Any] = {}
    waiting = [(name, False) for name in reversed(wanted)]
    under_way: set[str] = set()
    while waiting:
        name, seen = waiting.pop()
        if seen:
            order.setdefault(name, nodes[name])
        elif name not in under_way:
            under_way.add(name)
            waiting.append((name, True))
            needed = (one.partition(":")[0] for one in nodes[name].input if not one.startswith("^"))
            waiting += [(one, False) for one in needed if one not in under_way]
    return list(order.values())


def _resolved(tensor: str, nodes: dict[str, Any]) -> str:
    """The tensor that is passed on by Identity nodes."""
    name, _, index = tensor.partition(":")
    while name in nodes and nodes[name].op == "Identity":
        name, _, index = nodes[name].input[0].partition(":")
    return f"{name}:{index or 0}"


def _add(plan: _Plan, node: Any, nodes: dict[str, Any], tables: dict[str, Table]) -> None:
    sources = [_resolved(one, nodes) for one in node.input if not one.startswith("^")]
    if node.op in ("Identity", "NoOp"):
        return
    if node.op == "Const":
        _add_constant(plan, node)
    elif node.op in SIMPLE:
        plan.step(SIMPLE[node.op], node, sources)
    elif node.op == "LookupTableFindV2":
        table = tables.get(sources[0].partition(":")[0])
        if table is None:
            raise NotKnown("a table whose contents are not known")
        keys, values = (plan.keep(_plain(one)) for one in (table.keys, table.values))
        plan.step("lookup", node, sources[1:], keys=keys, values=values)
    elif node.op in OTHERS:
        OTHERS[node.op](plan, node, sources)
    else:
        raise NotKnown(node.op)


def _add_constant(plan: _Plan, node: Any) -> None:
    import tensorflow as tf

    value = tf.make_ndarray(node.attr["value"].tensor)
    plan.constants.append((plan.slot(f"{node.name}:0"), plan.keep(_plain(value)), value.dtype.kind == "O"))


def _plain(array: Any) -> Array:
    """An array that can be stored; numpy's strings lose zeros at their end."""
    made = np.asarray(array)
    if made.dtype.kind == "O":
        if any(one.endswith(b"\0") for one in made.ravel()):
            raise NotKnown("strings that end with a zero")
        return as_bytes(made)
    return made


def _type(node: Any, name: str) -> str:
    import tensorflow as tf

    made = tf.as_dtype(node.attr[name].type)
    if made == tf.string or made.name == "bfloat16":
        raise NotKnown(f"{node.op} of {made.name}")
    return str(made.name)


def _cast(plan: _Plan, node: Any, sources: list[str]) -> None:
    plan.step("cast", node, sources, dtype=_type(node, "DstT"))


def _bucketize(plan: _Plan, node: Any, sources: list[str]) -> None:
    plan.step("bucketize", node, sources, boundaries=plan.keep(np.array(node.attr["boundaries"].list.f, np.float32)))


def _bincount(plan: _Plan, node: Any, sources: list[str]) -> None:
    weights = next((key for slot, key, _ in plan.constants if slot == plan.slot(sources[2])), None)
    if weights is None or plan.arrays[weights].size:
        raise NotKnown("counts with weights")
    plan.step("bincount", node, sources, binary=node.attr["binary_output"].b)


def _lower(plan: _Plan, node: Any, sources: list[str]) -> None:
    if node.attr["encoding"].s:
        raise NotKnown("StringLower of Unicode")
    plan.step("lower", node, sources)


def _replace(plan: _Plan, node: Any, sources: list[str]) -> None:
    pattern, by = node.attr["pattern"].s.decode("latin-1"), node.attr["rewrite"].s.decode("latin-1")
    if not CHARACTERS.fullmatch(pattern) or "\\" in by or not by.isascii() or not node.attr["replace_global"].b:
        raise NotKnown("a regular expression")
    plan.step("replace", node, sources, pattern=pattern, by=by)


def _split(plan: _Plan, node: Any, sources: list[str]) -> None:
    separator = next((key for slot, key, _ in plan.constants if slot == plan.slot(sources[1])), None)
    if separator is None or plan.arrays[separator].item() != b"" or node.attr["maxsplit"].i != -1:
        raise NotKnown("a split at a separator")
    plan.step("split", node, sources, outputs=3)


def _rows(plan: _Plan, node: Any, sources: list[str]) -> None:
    if list(node.attr["row_partition_types"].list.s) != [b"FIRST_DIM_SIZE", b"VALUE_ROWIDS"]:
        raise NotKnown("another ragged tensor")
    plan.step("rows", node, sources)


def _slice(plan: _Plan, node: Any, sources: list[str]) -> None:
    if node.attr["ellipsis_mask"].i or node.attr["new_axis_mask"].i:
        raise NotKnown("a slice with new axes")
    masks = {"begins": "begin_mask", "ends": "end_mask", "shrinks": "shrink_axis_mask"}
    plan.step("slice", node, sources, **{key: node.attr[name].i for key, name in masks.items()})


def _squeeze(plan: _Plan, node: Any, sources: list[str]) -> None:
    plan.step("squeeze", node, sources, axes=list(node.attr["squeeze_dims"].list.i))


def _bucket(plan: _Plan, node: Any, sources: list[str]) -> None:
    plan.step("bucket", node, sources, count=node.attr["num_buckets"].i)


OTHERS: dict[str, Callable[[_Plan, Any, list[str]], None]] = {
    "Bucketize": _bucketize,
    "Cast": _cast,
    "DenseBincount": _bincount,
    "Max": lambda plan, node, sources: plan.step("largest", node, sources, keep=node.attr["keep_dims"].b),
    "RaggedTensorToTensor": _rows,
    "Shape": lambda plan, node, sources: plan.step("shape", node, sources, dtype=_type(node, "out_type")),
    "Size": lambda plan, node, sources: plan.step("size", node, sources, dtype=_type(node, "out_type")),
    "Squeeze": _squeeze,
    "StaticRegexReplace": _replace,
    "StridedSlice": _slice,
    "StringLower": _lower,
    "StringSplitV2": _split,
    "StringToHashBucketFast": _bucket,
}
