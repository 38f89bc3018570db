"""tf.data pipelines: their stages as written, the user's line of each, and what TensorFlow's own model says of them."""

from __future__ import annotations

import contextlib
import sys
import weakref
from time import perf_counter
from types import ModuleType
from typing import Any

from flatout.observe import stages
from flatout.observe.observer import Observer, Probe
from flatout.observe.private_names import patch
from flatout.source import users_code

MOST_PIPELINES = 40


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    pipelines = Pipelines(observer, module)
    observer.hooks.at_flush.append(pipelines.write)
    observer.shared.describe_pipeline = pipelines.describe
    observer.window.on_open.append(pipelines.count_elements)
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
        self.counted: list[tuple[Any, dict[int, int]]] = []
        """Iterators at the opening of the window, with the elements that each node had given by then."""

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
                    dataset._flatout_maker = stages.maker()
                    dataset._flatout_by = "keras" if dataset._flatout_maker else caller.partition(".")[0]

        return __init__

    def wrap_iterator(self, original: Any) -> Any:
        def _create_iterator(iterator: Any, dataset: Any) -> Any:
            began = perf_counter()
            result = original(iterator, dataset)
            with contextlib.suppress(Exception):
                number = self.describe(iterator._dataset)  # as levers have left it
                row = self.iterators[number]
                row[0] += 1
                row[1] += perf_counter() - began
                self.newest.append((number, weakref.ref(iterator)))
                del self.newest[:-8]
                iterator._flatout_pipeline = number
            if self.observer.spans.here:
                self.observer.spans.fresh = weakref.ref(iterator)
            return result

        return _create_iterator

    def wrap_consumer(self, original: Any) -> Any:
        def consume(dataset: Any, *args: Any, **kwargs: Any) -> Any:
            with contextlib.suppress(Exception):
                self.iterators[self.describe(dataset)][0] += 1
            return original(dataset, *args, **kwargs)

        return consume

    def describe(self, dataset: Any) -> int:
        chain = list(stages.chain(dataset))
        key = tuple((type(stage).__name__, getattr(stage, "_flatout_where", None)) for stage, _ in chain)
        number = self.numbers.get(key)
        if number is None:
            if len(self.numbers) >= MOST_PIPELINES:
                return len(self.numbers) - 1
            number = self.numbers[key] = len(self.numbers)
            self.iterators[number] = [0, 0.0]
            rows = [_stage(stage, depth) for stage, depth in reversed(chain)]
            self.observer.recorder.fact(
                "pipeline", number=number, stages=rows, options=_options(dataset), where=users_code.here(2)
            )
        return number

    def write(self) -> None:
        if self.iterators:
            self.observer.recorder.fact("iterators", rows=[[n, *row] for n, row in self.iterators.items()])

    def _model_of(self) -> Any:
        return getattr(self.module.data.experimental, "get_model_proto", None)

    def count_elements(self) -> None:
        get = self._model_of()
        self.counted = []
        for _, reference in self.newest if get is not None else ():
            iterator = reference()
            with contextlib.suppress(Exception):
                nodes = {} if iterator is None else get(iterator).nodes
                self.counted.append((reference, {node.id: node.num_elements for node in nodes.values()}))

    def ask_model(self) -> None:
        """TensorFlow's performance model of each iterator that is alive: time and elements by node."""
        get = self._model_of()
        for number, reference in self.newest if get is not None else ():
            iterator = reference()
            if iterator is None:
                continue
            try:
                model = get(iterator)
            except Exception as error:
                self.observer.recorder.fact("pipeline-model", number=number, error=str(error)[:200])
                continue
            before = next((counts for other, counts in self.counted if other is reference), {})
            nodes = [
                {
                    "id": node.id,
                    "name": node.name,
                    "inputs": list(node.inputs),
                    "elements": node.num_elements,
                    "before": before.get(node.id, 0),
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


def _stage(dataset: Any, depth: int) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": stages.kind(dataset),
        "where": getattr(dataset, "_flatout_where", None),
        "by": getattr(dataset, "_flatout_by", ""),
        "depth": depth,
    }
    for attribute, label in _ATTRIBUTES.items():
        if hasattr(dataset, attribute):
            value = stages.constant(getattr(dataset, attribute))
            if value is not None:
                row[label] = value
    with contextlib.suppress(Exception):
        row["spec"] = str(dataset.element_spec)[:400]
        row["element_bytes"] = stages.element_bytes(dataset.element_spec)
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


def _function(wrapper: Any) -> dict[str, Any]:
    """The user's function of a stage: name, place, and what in it keeps state."""
    python = getattr(wrapper, "_func", None)
    row: dict[str, Any] = {}
    code = getattr(python, "__code__", None)
    if code is not None:
        row["function"] = code.co_name
        row["function_where"] = [users_code.absolute(code.co_filename), code.co_firstlineno, code.co_name]
    counts = stages.ops_of(wrapper)
    row["ops"] = dict(sorted(counts.items(), key=lambda item: -item[1])[:60])
    row["stateful"] = stages.state_of(wrapper, counts)
    return row


def _options(dataset: Any) -> dict[str, Any]:
    found = stages.options_of(dataset)
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


PROBE = Probe("pipelines", tensorflow=on_tensorflow)
