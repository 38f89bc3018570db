"""Steps of custom loops: the optimizer, the gradient tape, and the model called by hand.

Eager: a call of the optimizer is a step. Traced: the graphs under construction are marked as those of functions that
train, and the calls of these functions are the steps. Where the optimizer stands in a loop of the graph (`for x in ds`
inside a tf.function), its own step counter tells how many steps a call has made. A function that takes gradients of
variables and assigns to them by itself (`w.assign_sub(rate * gradient)`) trains as well.
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from time import perf_counter
from types import CodeType, FrameType, ModuleType
from typing import Any

from flatout.observe.eager_lines import EagerLines
from flatout.observe.observer import Observer, Probe
from flatout.observe.private_names import Missing, patch
from flatout.source import users_code

_ASSIGN = frozenset(("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"))


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    _tape(observer)
    _apply(observer, "apply-v1")


def on_keras(observer: Observer, module: ModuleType) -> None:
    _apply(observer, "apply")
    _apply(observer, "apply-scaled")
    _model_call(observer, "model-call")


def on_tf_keras(observer: Observer, module: ModuleType) -> None:
    _apply(observer, "legacy-apply")
    _model_call(observer, "legacy-model-call")


def _apply(observer: Observer, key: str) -> None:
    from tensorflow.python.eager import context

    eager = context.executing_eagerly
    thread, ticks, streams, trial = observer.thread, observer.ticks, observer.streams, observer.trial

    def wrap(original: Any) -> Any:
        def apply(self: Any, *args: Any, **kwargs: Any) -> Any:
            if thread.apply:
                return original(self, *args, **kwargs)
            thread.apply = 1
            if trial.at_step is not None:  # held by a trial only: in a run they may come and go
                trial.optimizers[id(self)] = self
            start = perf_counter()
            try:
                return original(self, *args, **kwargs)
            finally:
                thread.apply = 0
                if not eager():
                    mark_graphs(_counter(self))
                elif not thread.busy:
                    stream = streams.get(id(self))
                    if stream is None:
                        stream = streams.make("apply", id(self), type(self).__name__)
                    end = perf_counter()
                    ticks.tick(stream, start, end)

        return apply

    patch(key, wrap)


def mark_graphs(counter: Any) -> None:
    """The graphs under construction now belong to functions that train; `functions` reads the mark when they are done.

    Inside a loop of the graph one call makes many steps: the optimizer's own counter will tell how many.
    """
    from tensorflow.python.framework import ops

    graph: Any = ops.get_default_graph()
    looped = False
    depth = 0
    while graph is not None and depth < 30:
        name = str(getattr(graph, "name", ""))
        graph._flatout_trains = True
        if looped:
            graph._flatout_counter = counter
        looped = looped or type(graph).__name__.startswith("WhileBody") or "Dataset_" in name or "while_body" in name
        graph = getattr(graph, "outer_graph", None)
        depth += 1


def descends(graph: Any) -> bool:
    """Whether a traced graph changes variables of which it has taken gradients."""
    sources = getattr(graph, "_flatout_sources", None)
    if not sources:
        return False
    try:
        outer = {id(inner): id(outer) for outer, inner in graph.captures}
        assigned = (op.inputs[0] for op in graph.get_operations() if op.type in _ASSIGN)
        return any(outer.get(id(handle)) in sources for handle in assigned)
    except Exception:  # a kind of graph without captures
        return False


def _keep_sources(sources: Any) -> None:
    """Note the variables of which the graph under construction takes gradients."""
    from tensorflow.python.framework import ops
    from tensorflow.python.util import nest

    graph: Any = ops.get_default_graph()
    handles = {id(one.handle) for one in nest.flatten(sources) if hasattr(one, "handle")}
    graph._flatout_sources = getattr(graph, "_flatout_sources", set()) | handles


def _counter(optimizer: Any) -> Any:
    """It outlives the optimizer, and does not keep it. Raises where that is gone."""
    reference = weakref.ref(optimizer)

    def read() -> int:
        count = reference().iterations  # type: ignore[union-attr]
        return int((count.numpy if hasattr(count, "numpy") else count.value().numpy)())

    return read


def _tape(observer: Observer) -> None:
    """The user's line of the eager step, and a last resort for loops that update their variables by hand."""
    from tensorflow.python.eager import context

    eager = context.executing_eagerly
    thread, ticks, streams = observer.thread, observer.ticks, observer.streams
    lines: dict[Any, list[Any]] = {}

    def write() -> None:
        if lines:
            observer.recorder.fact("tapes", rows=[[count, stack] for count, stack in lines.values()])

    observer.hooks.at_flush.append(write)

    def wrap(original: Any) -> Any:
        def gradient(self: Any, *args: Any, **kwargs: Any) -> Any:
            start = perf_counter()
            try:
                return original(self, *args, **kwargs)
            finally:
                if not eager():
                    with contextlib.suppress(Exception):  # whatever a graph or a source may be
                        _keep_sources(args[1] if len(args) > 1 else kwargs.get("sources"))
                else:
                    code = _counted(lines, sys._getframe(1))
                    if not thread.busy:
                        key_of_stream = ("tape", code)
                        stream = streams.get(key_of_stream)
                        if stream is None:
                            stream = streams.make("tape", key_of_stream, "GradientTape.gradient")
                        ticks.tick(stream, start, perf_counter())

        return gradient

    patch("tape-gradient", wrap)


def _counted(lines: dict[Any, list[Any]], frame: FrameType) -> CodeType | None:
    """The user's code that this frame is of, or was called by. Its line is counted."""
    with contextlib.suppress(Exception):  # of recursion too deep, say: that is not for the program
        found = users_code.innermost(frame)
        if found is not None:
            key = (found.f_code, found.f_lineno)
            row = lines.get(key)
            if row is None:
                row = lines[key] = [0, users_code.stack(found)]
            row[0] += 1
            return found.f_code
    return None


def _model_call(observer: Observer, key: str) -> None:
    from tensorflow.python.eager import context

    eager = context.executing_eagerly
    thread, ticks, streams = observer.thread, observer.ticks, observer.streams
    lines = EagerLines(observer, "model")

    def wrap(original: Any) -> Any:
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            if thread.model or thread.busy or not eager():
                return original(self, *args, **kwargs)
            thread.model = 1
            start = perf_counter()
            try:
                return original(self, *args, **kwargs)
            finally:
                thread.model = 0
                stream = streams.get(("model", id(self)))
                if stream is None:
                    stream = streams.make("model", ("model", id(self)), _name(self))
                end = perf_counter()
                lines.add(sys._getframe(1), end - start)
                ticks.tick(stream, start, end)

        return __call__

    try:
        patch(key, wrap)
    except Missing:
        observer.note(f"{key} is missing")


def _name(model: Any) -> str:
    with contextlib.suppress(Exception):  # a class of the program's may make it
        return str(model.name)
    return "model"


PROBE = Probe("steps_of_loops", tensorflow=on_tensorflow, keras=on_keras, tf_keras=on_tf_keras)
