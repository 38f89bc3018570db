"""tf.data pipelines: their stages as written, the user's line of each, and what TensorFlow's own model says of them."""

from __future__ import annotations

import contextlib
import sys
import weakref
from time import perf_counter
from types import ModuleType
from typing import Any

from flatout.observe import users_code
from flatout.observe.observer import Observer
from flatout.observe.private_names import patch

RANDOM = (
    "Random",
    "Multinomial",
    "Truncated",
    "Shuffle",
    "ParameterizedTruncated",
    "StatefulUniform",
    "StatefulRandom",
)
PYTHON = ("PyFunc", "EagerPyFunc", "PyFuncStateless")
TABLE = ("LookupTable", "HashTable")
VARIABLE = ("ReadVariableOp", "VarHandleOp", "AssignVariableOp", "AssignAddVariableOp", "VariableV2")
OUTPUT = ("PrintV2", "Print")
MOST_PIPELINES = 40


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    pipelines = Pipelines(observer, module)
    observer.at_flush.append(pipelines.write)
    observer.window.on_close.append(pipelines.ask_model)
    patch("dataset-init", pipelines.wrap_init)
    patch("iterator-make", pipelines.wrap_iterator)
    patch("dataset-reduce", pipelines.wrap_consumer)
    patch("dataset-one-shot", pipelines.wrap_consumer)
    patch("dataset-initializable", pipelines.wrap_consumer)


class Pipelines:
    def __init__(self, observer: Observer, module: ModuleType) -> None:
        self.observer = observer
        self.module: Any = module
        self.numbers: dict[Any, int] = {}
        self.iterators: dict[int, list[Any]] = {}
        self.newest: list[tuple[int, Any]] = []

    def wrap_init(self, original: Any) -> Any:
        def __init__(dataset: Any, *args: Any, **kwargs: Any) -> None:
            original(dataset, *args, **kwargs)
            frame = users_code.innermost(sys._getframe(1), 60)
            if frame is not None:
                with contextlib.suppress(AttributeError):
                    dataset._flatout_where = (
                        users_code.absolute(frame.f_code.co_filename),
                        frame.f_lineno,
                        frame.f_code.co_name,
                    )
                    caller = sys._getframe(1).f_globals.get("__name__", "")
                    dataset._flatout_by = "keras" if _made_by_keras() else caller.partition(".")[0]

        return __init__

    def wrap_iterator(self, original: Any) -> Any:
        def _create_iterator(iterator: Any, dataset: Any) -> Any:
            began = perf_counter()
            result = original(iterator, dataset)
            with contextlib.suppress(Exception):
                number = self.describe(dataset)
                row = self.iterators[number]
                row[0] += 1
                row[1] += perf_counter() - began
                self.newest.append((number, weakref.ref(iterator)))
                del self.newest[:-8]
                iterator._flatout_pipeline = number
            return result

        return _create_iterator

    def wrap_consumer(self, original: Any) -> Any:
        def consume(dataset: Any, *args: Any, **kwargs: Any) -> Any:
            with contextlib.suppress(Exception):
                self.iterators[self.describe(dataset)][0] += 1
            return original(dataset, *args, **kwargs)

        return consume

    def describe(self, dataset: Any) -> int:
        chain = list(_chain(dataset))
        key = tuple((type(stage).__name__, getattr(stage, "_flatout_where", None)) for stage, _ in chain)
        number = self.numbers.get(key)
        if number is None:
            if len(self.numbers) >= MOST_PIPELINES:
                return len(self.numbers) - 1
            number = self.numbers[key] = len(self.numbers)
            self.iterators[number] = [0, 0.0]
            stages = [_stage(stage, depth) for stage, depth in reversed(chain)]
            self.observer.recorder.fact(
                "pipeline", number=number, stages=stages, options=_options(dataset), where=users_code.here(2)
            )
        return number

    def write(self) -> None:
        if self.iterators:
            self.observer.recorder.fact("iterators", rows=[[n, *row] for n, row in self.iterators.items()])

    def ask_model(self) -> None:
        """TensorFlow's performance model of each iterator that is alive: time and elements by node."""
        get = getattr(self.module.data.experimental, "get_model_proto", None)
        if get is None:
            return
        for number, reference in self.newest:
            iterator = reference()
            if iterator is None:
                continue
            try:
                model = get(iterator)
            except Exception as error:
                self.observer.recorder.fact("pipeline-model", number=number, error=str(error)[:200])
                continue
            nodes = [
                {
                    "id": node.id,
                    "name": node.name,
                    "inputs": list(node.inputs),
                    "elements": node.num_elements,
                    "busy_ms": node.processing_time / 1e6,
                    "bytes_produced": node.bytes_produced,
                    "buffered_bytes": node.buffered_bytes,
                    "buffered": node.buffered_elements,
                    "parameters": {p.name: p.value for p in node.parameters},
                    "autotune": node.autotune,
                }
                for node in model.nodes.values()
            ]
            self.observer.recorder.fact("pipeline-model", number=number, output=model.output, nodes=nodes)


def _made_by_keras() -> bool:
    """Whether Keras stands between the user's line and this stage (a dataset made from arrays)."""
    frame: Any = sys._getframe(2)
    depth = 0
    while frame is not None and depth < 40:
        if users_code.is_users(frame.f_code):
            return False
        name = frame.f_globals.get("__name__", "")
        if name.startswith(("keras.", "tf_keras.")):
            return True
        frame = frame.f_back
        depth += 1
    return False


def _chain(dataset: Any, depth: int = 0) -> Any:
    """The stages from the last to the first; where a stage has several inputs, each branch follows."""
    steps = 0
    while dataset is not None and steps < 60:
        if type(dataset).__name__ == "DatasetV1Adapter":
            dataset = dataset._dataset  # what TF1 programs hold is a shell around the stage itself
            continue
        yield dataset, depth
        inputs = dataset._inputs()
        for other in inputs[1:]:
            yield from _chain(other, depth + 1)
        dataset = inputs[0] if inputs else None
        steps += 1


def _stage(dataset: Any, depth: int) -> dict[str, Any]:
    name = type(dataset).__name__.strip("_")
    row: dict[str, Any] = {
        "name": name.removesuffix("Dataset").removesuffix("DatasetV2").removesuffix("DatasetV1"),
        "where": getattr(dataset, "_flatout_where", None),
        "by": getattr(dataset, "_flatout_by", ""),
        "depth": depth,
    }
    for attribute, label in _ATTRIBUTES.items():
        if hasattr(dataset, attribute):
            value = _constant(getattr(dataset, attribute))
            if value is not None:
                row[label] = value
    with contextlib.suppress(Exception):
        row["spec"] = str(dataset.element_spec)[:400]
        row["element_bytes"] = _element_bytes(dataset.element_spec)
    with contextlib.suppress(Exception):
        row["cardinality"] = int(dataset.cardinality())
    function = getattr(dataset, "_map_func", None) or getattr(dataset, "_predicate", None)
    if function is not None:
        with contextlib.suppress(Exception):
            row.update(_function(function))
    if hasattr(dataset, "_filenames"):
        with contextlib.suppress(Exception):
            row["files"] = int(dataset._filenames.shape.num_elements() or 1)
    if hasattr(dataset, "_tensors"):
        with contextlib.suppress(Exception):
            row["strings"] = any(t.dtype.name == "string" for t in dataset._tensors)
            row["source_bytes"] = sum(
                int(t.shape.num_elements() or 0) * max(t.dtype.size or 0, 1) for t in dataset._tensors
            )
    return row


_ATTRIBUTES = {
    "_num_parallel_calls": "parallelism",
    "_deterministic": "deterministic",
    "_batch_size": "batch",
    "_drop_remainder": "drop_remainder",
    "_buffer_size": "buffer",
    "_cycle_length": "cycle",
    "_block_length": "block",
    "_filename": "cache_file",
    "_count": "count",
    "_num_parallel_reads": "parallel_reads",
    "_seed": "seed",
    "_reshuffle_each_iteration": "reshuffle",
}


def _constant(value: Any) -> Any:
    if isinstance(value, (int, float, str, bool)):
        return value
    with contextlib.suppress(Exception):
        value = value.numpy()
        return value.decode() if isinstance(value, bytes) else value.item()
    return None


def _element_bytes(spec: Any) -> int | None:
    import tensorflow as tf

    total = 0
    for leaf in tf.nest.flatten(spec):
        count = getattr(getattr(leaf, "shape", None), "num_elements", lambda: None)()
        if count is None or leaf.dtype.size is None:
            return None
        total += int(count) * int(leaf.dtype.size)
    return total


def _function(wrapper: Any) -> dict[str, Any]:
    """The user's function of a stage: name, place, and what in it keeps state."""
    python = getattr(wrapper, "_func", None)
    row: dict[str, Any] = {}
    code = getattr(python, "__code__", None)
    if code is not None:
        row["function"] = code.co_name
        row["function_where"] = [users_code.absolute(code.co_filename), code.co_firstlineno, code.co_name]
    definition = wrapper.function.graph.as_graph_def()
    counts: dict[str, int] = {}
    nodes = list(definition.node)
    for inner in definition.library.function:
        nodes.extend(inner.node_def)
    for node in nodes:
        counts[node.op] = counts.get(node.op, 0) + 1
    row["ops"] = dict(sorted(counts.items(), key=lambda item: -item[1])[:60])
    row["stateful"] = _state(counts)
    if row["stateful"] is None:
        captured = [str(t.dtype.name) for t in getattr(wrapper.function, "captured_inputs", ())]
        if "resource" in captured:
            row["stateful"] = "resource"
    return row


def _state(counts: dict[str, int]) -> str | None:
    def any_of(marks: tuple[str, ...]) -> bool:
        return any(op.startswith(marks) and not op.startswith("Stateless") for op in counts)

    if any_of(PYTHON):
        return "python"
    if any_of(RANDOM):
        return "random"
    if any_of(TABLE):
        return "lookup table"
    if any_of(VARIABLE):
        return "variable"
    if any_of(OUTPUT):
        return "print"
    return None


def _options(dataset: Any) -> dict[str, Any]:
    options = dataset.options()
    found: dict[str, Any] = {}
    for path in (
        "autotune.enabled",
        "autotune.cpu_budget",
        "experimental_optimization.apply_default_optimizations",
        "experimental_optimization.map_parallelization",
        "experimental_optimization.map_and_batch_fusion",
        "experimental_optimization.inject_prefetch",
        "threading.private_threadpool_size",
        "threading.max_intra_op_parallelism",
        "deterministic",
    ):
        holder: Any = options
        for part in path.split("."):
            holder = getattr(holder, part, None)
        if holder is not None and holder != "":
            found[path] = holder if isinstance(holder, (bool, int)) else str(holder)
    stage: Any = dataset
    for _ in range(60):
        if type(stage).__name__ == "_OptionsDataset" and getattr(stage, "_flatout_by", "") != "keras":
            found["where"] = getattr(stage, "_flatout_where", None)
            break
        inputs = stage._inputs()
        if not inputs:
            break
        stage = inputs[0]
    return found
