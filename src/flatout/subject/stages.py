"""Parts a model into what only TensorFlow can run (strings, tables, hashing, ragged tensors) and its numeric core.

Three stages: `before` makes numbers of the inputs, `core` computes, `after` makes strings of the results. The cut is
made in the frozen graph. A node that works on strings, tables or ragged tensors belongs to `before`, with all that it
needs; it belongs to `after`, with all that needs it, where it needs a result of a heavy node (a matrix product, a
convolution). What is left is the core: the only part that other runtimes are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FOREIGN_TYPES = ("string", "resource")
FOREIGN = frozenset(
    [
        "Bincount", "Bucketize", "DecodeBmp", "DecodeCSV", "DecodeGif", "DecodeImage", "DecodeJpeg", "DecodePng",
        "DecodeRaw", "DecodeWav", "DenseBincount", "GatherNdRagged", "ParseExample", "ParseExampleV2",
        "RaggedBincount", "RaggedGather", "RaggedRange", "RaggedTensorToSparse", "RaggedTensorToTensor",
        "RaggedTensorToVariant", "SparseBincount", "SparseFillEmptyRows", "SparseReshape", "SparseSegmentMean",
        "SparseSegmentSqrtN", "SparseSegmentSum", "SparseTensorDenseMatMul", "SparseToDense", "StringToNumber",
        "StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong", "Unique", "UniqueV2",
        "UniqueWithCounts",
    ]
)  # fmt: skip
"""Operations on numbers that no other runtime has: they belong to the preparation of inputs."""
HEAVY = frozenset(
    [
        "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Conv1D", "Conv2D", "Conv2DBackpropInput", "Conv3D",
        "DepthwiseConv2dNative", "Einsum", "MatMul", "StatelessWhile", "While",
    ]
)  # fmt: skip
LEAVES = ("Const", "Placeholder", "NoOp")
STRING = 7
"""The value in TensorFlow's DataType enum."""


@dataclass(frozen=True)
class Cut:
    """Which nodes belong to which stage, by name, and the tensors that pass between the stages."""

    before: frozenset[str]
    core: frozenset[str]
    after: frozenset[str]
    into_core: tuple[str, ...]
    """Tensors that the core reads, and that are inputs of the model or made by `before`."""
    fixed: frozenset[str]
    """Nodes that depend on no input: each stage that needs one has it."""
    from_core: tuple[str, ...]
    """Tensors of the core that `after` reads, or that are outputs of the model."""


@dataclass(frozen=True)
class Node:
    """A node of a graph as far as the cut is concerned."""

    name: str
    op: str
    inputs: tuple[str, ...]
    """Tensors (`node:0`)."""
    after: tuple[str, ...] = ()
    """Nodes that have to run before it."""
    types: tuple[str, ...] = ()
    """Of its inputs and outputs."""
    frame: str = ""
    """The loop of TensorFlow 1 that it enters."""
    on_strings: bool = False
    """It, or a function that it calls, works on strings or has an operation of `FOREIGN`."""

    @property
    def needs(self) -> list[str]:
        return [*(tensor.partition(":")[0] for tensor in self.inputs), *self.after]

    @property
    def foreign(self) -> bool:
        if self.op in ("Const", "Placeholder", "Identity", "NoOp"):
            return False
        return self.on_strings or self.op in FOREIGN or any(kind in FOREIGN_TYPES for kind in self.types)


def nodes_of(graph: Any) -> dict[str, Node]:
    """The nodes of a FuncGraph."""
    definition = graph.as_graph_def()
    functions = _on_strings(definition.library)
    marked = {node.name for node in definition.node if _works_on_strings(node, functions)}
    return {
        one.name: Node(
            one.name,
            one.type,
            tuple(tensor.name for tensor in one.inputs),
            tuple(other.name for other in one.control_inputs),
            tuple(tensor.dtype.base_dtype.name for tensor in (*one.inputs, *one.outputs)),
            one.get_attr("frame_name").decode() if one.type == "Enter" else "",
            one.name in marked,
        )
        for one in graph.get_operations()
    }


def _on_strings(library: Any) -> set[str]:
    """Functions that work on strings, themselves or by what they call."""
    found: set[str] = set()
    while True:
        more = {
            one.signature.name
            for one in library.function
            if any(_works_on_strings(node, found) for node in one.node_def if node.op != "Const")
        }
        if more <= found:
            return found
        found |= more


def _works_on_strings(node: Any, functions: set[str]) -> bool:
    values = list(node.attr.values())
    called = {one.func.name for one in values} | {one.name for value in values for one in value.list.func}
    types = {one.type for one in values} | {one for value in values for one in value.list.type}
    return node.op in FOREIGN or node.op in functions or STRING in types or bool(called & functions)


def cut(nodes: Mapping[str, Node], outputs: Sequence[str]) -> Cut | None:
    """Where to part the graph; None where there is nothing to part, or no core would be left."""
    needed = _ancestors(nodes, (name.partition(":")[0] for name in outputs))
    used = {name: node for name, node in nodes.items() if name in needed}
    foreign = {name for name, node in used.items() if node.foreign}
    if not foreign:
        return None
    readers = _readers(used)
    heavy = {name for name, node in used.items() if node.op in HEAVY and not node.foreign}
    computed = _descendants(readers, heavy)
    before = _with_whole_loops(used, readers, _ancestors(used, foreign - computed))
    after = _descendants(readers, foreign & computed) | (foreign & computed)
    varying = _descendants(readers, {name for name, node in used.items() if node.op == "Placeholder"})
    fixed = {name for name in set(used) - varying if used[name].op != "Placeholder" and "Random" not in used[name].op}
    kept = {name.partition(":")[0] for name in outputs} | heavy
    after |= _only_for(readers, after, set(used) - before - kept)
    core = {name for name in set(used) - before - after if used[name].op not in LEAVES}
    core = {name for name in core if not _is_plain(used, name)}
    if not core & heavy or before & after or before & heavy:
        return None
    into = _passed(used, core, lambda source: source not in core and source not in fixed)
    outputs_of_core = [one for one in outputs if one.partition(":")[0] in core]
    return Cut(
        frozenset(before),
        frozenset(core),
        frozenset(after),
        into,
        frozenset(fixed),
        tuple(dict.fromkeys([*_results(used, core, after), *outputs_of_core])),
    )


def _is_plain(nodes: Mapping[str, Node], name: str) -> bool:
    """Whether it only passes on an input or a constant of strings."""
    node = nodes[name]
    return node.op == "Identity" and any(kind in FOREIGN_TYPES for kind in node.types)


def _passed(nodes: Mapping[str, Node], core: Iterable[str], is_outside: Any) -> tuple[str, ...]:
    found = [tensor for name in sorted(core) for tensor in nodes[name].inputs if is_outside(tensor.partition(":")[0])]
    return tuple(dict.fromkeys(found))


def _results(nodes: Mapping[str, Node], core: set[str], after: set[str]) -> list[str]:
    return [tensor for name in sorted(after) for tensor in nodes[name].inputs if tensor.partition(":")[0] in core]


def _ancestors(nodes: Mapping[str, Node], names: Iterable[str]) -> set[str]:
    """These nodes and all that they need."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found and name in nodes:
            found.add(name)
            waiting += nodes[name].needs
    return found


def _readers(nodes: Mapping[str, Node]) -> dict[str, list[str]]:
    readers: dict[str, list[str]] = {}
    for node in nodes.values():
        for name in node.needs:
            readers.setdefault(name, []).append(node.name)
    return readers


def _descendants(readers: Mapping[str, Sequence[str]], names: Iterable[str]) -> set[str]:
    """All nodes that need one of these."""
    found: set[str] = set()
    waiting = [reader for name in names for reader in readers.get(name, ())]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += readers.get(name, ())
    return found


def _only_for(readers: Mapping[str, Sequence[str]], after: set[str], others: set[str]) -> set[str]:
    """Nodes that nothing reads but these: an argmax whose result is looked up in a table."""
    moved: set[str] = set()
    while True:
        more = {
            name for name in others - moved if (by := readers.get(name)) and all(one in after | moved for one in by)
        }
        if not more:
            return moved
        moved |= more


def _with_whole_loops(nodes: Mapping[str, Node], readers: Mapping[str, Sequence[str]], chosen: set[str]) -> set[str]:
    """A loop of TensorFlow 1 cannot be cut: where one of its nodes is chosen, all of it is, with what it needs."""
    loops: dict[str, set[str]] = {}
    for node in nodes.values():
        if node.frame:
            loops.setdefault(node.frame, set()).update(_inside(nodes, readers, node.name))
    while True:
        more = {name for members in loops.values() if members & chosen for name in members}
        if more <= chosen:
            return chosen
        chosen = _ancestors(nodes, chosen | more)


def _inside(nodes: Mapping[str, Node], readers: Mapping[str, Sequence[str]], entry: str) -> set[str]:
    found, waiting = {entry}, [entry]
    while waiting:
        name = waiting.pop()
        if nodes[name].op == "Exit":
            continue
        for reader in readers.get(name, ()):
            if reader not in found:
                found.add(reader)
                waiting.append(reader)
    return found
