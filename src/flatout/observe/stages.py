"""Reads a dataset that exists: its stages, what state their functions keep, how large its elements are."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

from flatout.model.vocabulary import State
from flatout.source import users_code

RANDOM = (
    "Random",
    "Multinomial",
    "Truncated",
    "Shuffle",
    "ParameterizedTruncated",
    "StatefulUniform",
    "StatefulRandom",
    "SampleDistortedBoundingBox",
)
PYTHON = ("PyFunc", "EagerPyFunc", "PyFuncStateless")
TABLE = ("LookupTable", "HashTable")
VARIABLE = ("ReadVariableOp", "VarHandleOp", "AssignVariableOp", "AssignAddVariableOp", "VariableV2")
OUTPUT = ("PrintV2", "Print")
STATES: dict[State, tuple[str, ...]] = {
    "python": PYTHON,
    "random": RANDOM,
    "lookup table": TABLE,
    "variable": VARIABLE,
    "print": OUTPUT,
}
"""Ops that keep state, by their beginning; the strongest reason first."""
MOST_STAGES = 60


def plain(dataset: Any) -> Any:
    """The stage itself: what TF1 programs hold is a shell around it."""
    while type(dataset).__name__ == "DatasetV1Adapter":
        dataset = dataset._dataset
    return dataset


def chain(dataset: Any) -> Iterator[tuple[Any, int]]:
    """The stages from the last to the first; where a stage has several inputs, each branch follows. A stage that
    several branches have in common comes once, in the outermost of them."""
    return _branch(dataset, 0, set())


def _branch(dataset: Any, depth: int, seen: set[int]) -> Iterator[tuple[Any, int]]:
    line: list[tuple[Any, Any]] = []
    while dataset is not None and len(line) < MOST_STAGES and id(dataset := plain(dataset)) not in seen:
        seen.add(id(dataset))
        line.append((dataset, dataset._inputs()))
        dataset = line[-1][1][0] if line[-1][1] else None
    for stage, inputs in line:
        yield stage, depth
        for other in inputs[1:]:
            yield from _branch(other, depth + 1, seen)


def kind(dataset: Any) -> str:
    """`Map`, `ParallelMap`, `Batch`, `TFRecord`: the class without its decoration."""
    name = type(dataset).__name__.strip("_")
    return name.removesuffix("Dataset").removesuffix("DatasetV2").removesuffix("DatasetV1")


def constant(value: Any) -> Any:
    """A stage's setting as a plain value; None where it is not known before the program runs."""
    if isinstance(value, (int, float, str, bool)):
        return value
    try:
        value = value.numpy()
        return value.decode() if isinstance(value, bytes) else value.item()
    except Exception:
        return None


def setting(dataset: Any, attribute: str) -> Any:
    return constant(getattr(dataset, attribute, None))


def element_bytes(spec: Any) -> int | None:
    """Bytes of one element, where shapes and types say them."""
    import tensorflow as tf

    total = 0
    for leaf in tf.nest.flatten(spec):
        count = getattr(getattr(leaf, "shape", None), "num_elements", lambda: None)()
        if count is None or leaf.dtype.size is None or leaf.dtype == tf.string:
            return None
        total += int(count) * int(leaf.dtype.size)
    return total


def ops_of(function: Any) -> dict[str, int]:
    """How often each kind of op stands in a stage's traced function, the functions it calls included."""
    definition = function.function.graph.as_graph_def()
    counts: dict[str, int] = {}
    nodes = list(definition.node)
    for inner in definition.library.function:
        nodes.extend(inner.node_def)
    for node in nodes:
        counts[node.op] = counts.get(node.op, 0) + 1
    return counts


def state_of(function: Any, counts: dict[str, int] | None = None) -> State | None:
    """What keeps state in a stage's function: python, random, lookup table, variable, print or resource."""
    found = _named_states(ops_of(function) if counts is None else counts)
    return found[0] if found else "resource" if _holds_resource(function) else None


def _named_states(counts: dict[str, int]) -> list[State]:
    ops = [op for op in counts if not op.startswith("Stateless")]
    return [name for name, marks in STATES.items() if any(op.startswith(marks) for op in ops)]


def _holds_resource(function: Any) -> bool:
    return any(tensor.dtype.name == "resource" for tensor in getattr(function.function, "captured_inputs", ()))


def states(dataset: Any) -> list[State]:
    """The state that the functions of one stage keep, the strongest reason of each."""
    known: list[State] | None = getattr(dataset, "_flatout_states", None)
    if known is None:  # graphs may be large, and every lever asks
        found = (state_of(function) for function in dataset._functions())
        known = dataset._flatout_states = [state for state in found if state is not None]
    return known


def every_state(dataset: Any) -> list[State]:
    """All state that the functions of one stage keep: what is called Python code may read a variable as well."""
    known: list[State] | None = getattr(dataset, "_flatout_every_state", None)
    if known is None:
        found: dict[State, None] = {}
        for function in dataset._functions():
            named = _named_states(ops_of(function))
            found |= dict.fromkeys(named)
            if _holds_resource(function) and not {"lookup table", "variable"} & set(named):
                found["resource"] = None
        known = dataset._flatout_every_state = list(found)
    return known


def runs_python(dataset: Any) -> bool:
    """Whether Python code of the program makes the elements, in this stage or before it."""
    return any("python" in states(stage) for stage, _ in chain(dataset))


def draws(dataset: Any) -> bool:
    """Whether the functions of one stage draw random numbers, whatever else they do."""
    known: bool | None = getattr(dataset, "_flatout_draws", None)
    if known is None:
        ops = (op for function in dataset._functions() for op in ops_of(function))
        known = dataset._flatout_draws = any(op.startswith(RANDOM) for op in ops)
    return known


def location(dataset: Any) -> str:
    """`train.py:31`, where the program's line is known; else the kind of the stage."""
    where = getattr(dataset, "_flatout_where", None)
    return f"{os.path.basename(where[0])}:{where[1]}" if where else kind(dataset).lower()


def maker() -> str:
    """The module of Keras that stands between the user's line and the dataset being made; empty where none does."""
    frame: Any = sys._getframe(2)
    depth = 0
    while frame is not None and depth < 40:
        if users_code.is_users(frame.f_code):
            return ""
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith(("keras.", "tf_keras.")):
            return name
        frame = frame.f_back
        depth += 1
    return ""


def from_arrays(dataset: Any) -> bool:
    """Whether Keras made the source itself, from arrays, a generator or a PyDataset given to fit."""
    sources = (stage for stage, _ in chain(dataset) if not stage._inputs())
    return any("data_adapter" in getattr(source, "_flatout_maker", "") for source in sources)


def options_of(dataset: Any) -> dict[str, Any]:
    """The options that matter for speed, where the program has set them."""
    found: dict[str, Any] = {}
    options = dataset.options()
    for path in (
        "autotune.enabled",
        "autotune.cpu_budget",
        "autotune.ram_budget",
        "experimental_optimization.apply_default_optimizations",
        "experimental_optimization.map_parallelization",
        "experimental_optimization.map_and_batch_fusion",
        "experimental_optimization.inject_prefetch",
        "threading.private_threadpool_size",
        "threading.max_intra_op_parallelism",
        "deterministic",
    ):
        value: Any = options
        for part in path.split("."):
            value = getattr(value, part, None)
        if value is not None and value != "":
            found[path] = value if isinstance(value, (bool, int)) else str(value)
    return found
