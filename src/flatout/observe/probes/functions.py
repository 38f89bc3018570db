"""tf.functions: who makes them, how often they are called, when they are traced and which argument made them."""

from __future__ import annotations

import sys
from time import perf_counter
from types import ModuleType
from typing import Any

from flatout.model.vocabulary import StreamKind
from flatout.observe.observer import Observer, Probe
from flatout.observe.private_names import Wrap, patch
from flatout.observe.probes.steps_of_loops import descends, mark_graphs
from flatout.observe.spans import Key
from flatout.observe.ticks import CALL, KERAS, TRACE
from flatout.observe.traced import Asked, any_in, asked, kept_in
from flatout.source import users_code

MOST_TRACES = 3000


class Total:
    """What is counted of all tf.functions that one piece of source has made."""

    __slots__ = ("calls", "jit", "made", "made_at", "seconds", "signatures", "trace_seconds", "traces")

    def __init__(self) -> None:
        self.calls = 0
        self.seconds = 0.0
        self.made = 0
        self.made_at: dict[users_code.Location, int] = {}
        self.traces = 0
        self.trace_seconds = 0.0
        self.jit: bool | None = None
        self.signatures: list[dict[str, str]] = []

    def to_json(self) -> dict[str, Any]:
        made_at = sorted(self.made_at.items(), key=lambda item: -item[1])[:5]
        return {
            "calls": self.calls,
            "seconds": self.seconds,
            "made": self.made,
            "made_at": [[*place, count] for place, count in made_at],
            "traces": self.traces,
            "trace_s": self.trace_seconds,
            "jit": self.jit,
        }


class Known:
    """What is remembered about one tf.function object, as an attribute of it."""

    __slots__ = ("counter", "key", "last_count", "name", "owner", "settled", "stream", "total", "trains")

    def __init__(self, owner: Functions, key: tuple[str, int, str], name: str, total: Total) -> None:
        self.owner = owner
        self.key = key
        self.total = total
        self.name = name
        self.stream: Any = None
        self.settled = False
        self.trains = False
        self.counter: Any = None  # an optimizer whose steps are counted inside a loop of this function
        self.last_count = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """None in a copy or a pickle of the function: the observer cannot be copied."""
        return type(None), ()


class Functions:
    """All tf.functions of the process; what is counted is kept by source line, and survives them."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.totals: dict[tuple[str, int, str], Total] = {}
        self.trains: dict[int, tuple[bool, Any]] = {}
        """By the identity of the cache of traces: whether its steps are in a loop, and what counts them."""
        self.traces = 0
        self.calling: Known | None = None
        """The function that was called last."""
        observer.hooks.at_flush.append(self.write)

    def known(self, function: Any) -> Known:
        found: Known | None = getattr(function, "_flatout_known", None)
        if found is None or found.owner is not self:  # what an observer before this one knew is not ours
            key = _definition(function)
            found = Known(self, key, str(getattr(function, "_name", "") or "function"), self.total(key))
            function._flatout_known = found
        return found

    def total(self, key: tuple[str, int, str]) -> Total:
        found = self.totals.get(key)
        if found is None:
            found = self.totals[key] = Total()
        return found

    def write(self) -> None:
        rows = [[*key, total.to_json()] for key, total in list(self.totals.items())[:500]]
        self.observer.recorder.fact("functions", rows=rows)


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    functions = observer.shared.functions = Functions(observer)
    wrap_call = _count_calls(observer, functions)
    patch("function-init", _count_made(observer, functions))
    patch("function-call", wrap_call)
    patch("concrete-call", wrap_call)
    patch("trace", _time_traces(observer, functions))


def _count_made(observer: Observer, functions: Functions) -> Wrap:
    thread = observer.thread

    def wrap(original: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            if not thread.busy & KERAS:
                total = functions.total(_definition(self))
                total.made += 1
                total.jit = bool(getattr(self, "_jit_compile", None))
                where = users_code.here()
                if where is not None:
                    total.made_at[where] = total.made_at.get(where, 0) + 1

        return __init__

    return wrap


def _count_calls(observer: Observer, functions: Functions) -> Wrap:
    from tensorflow.python.eager import context

    thread, ticks, eager, spans = observer.thread, observer.ticks, context.executing_eagerly, observer.spans

    def wrap(original: Any) -> Any:
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
            busy = thread.busy
            if busy & (CALL | TRACE):
                if busy & TRACE:
                    _called_while_tracing(functions, self)
                return original(self, *args, **kwargs)
            known = getattr(self, "_flatout_known", None)
            if known is None or known.owner is not functions:
                known = functions.known(self)
            if not (known.settled or busy & KERAS or eager()):  # a graph is being built by hand
                return original(self, *args, **kwargs)
            thread.busy = busy | CALL
            traced = ticks.trace
            functions.calling = known
            start = ticks.called = ticks.call_since = perf_counter()
            try:
                return original(self, *args, **kwargs)
            finally:
                end = perf_counter()
                thread.busy = busy
                ticks.call_since = 0.0
                ticks.call += end - start
                total = known.total
                total.calls += 1
                total.seconds += end - start
                if ticks.trace != traced and spans.here:
                    spans.leave_if("first-call")
                if not busy & KERAS:
                    # The short way of nearly every call; what is new about a call takes the long one.
                    if known.settled and ticks.trace == traced:
                        ticks.tick(known.stream, start, end)
                    else:
                        _called(observer, functions, known, self, start, end)

        return __call__

    return wrap


def _time_traces(observer: Observer, functions: Functions) -> Wrap:
    thread, ticks, spans = observer.thread, observer.ticks, observer.spans

    def wrap(original: Any) -> Any:
        def _create_concrete_function(*args: Any, **kwargs: Any) -> Any:
            busy = thread.busy
            outermost = not busy & TRACE
            thread.busy = busy | TRACE
            depth = None
            if outermost and spans.here:
                spans.go_on("first-call")
                depth = spans.enter(_span(args))
            start = perf_counter()
            try:
                concrete = original(*args, **kwargs)
            finally:
                thread.busy = busy
                if depth is not None:
                    spans.leave(depth)
                    known = functions.calling
                    if busy & CALL and known is not None:
                        # What a call does once, after its trace: optimize the graph, compile it, allocate.
                        spans.enter(Key("first-call", known.name, *known.key[:2]))
                end = perf_counter()
                if outermost:
                    ticks.trace += end - start
            try:
                _traced(observer, functions, concrete, asked(args), end - start, outermost)
            except Exception as error:
                observer.note(f"a trace could not be described: {type(error).__name__}: {error}")
            return concrete

        return _create_concrete_function

    return wrap


def _span(args: tuple[Any, ...]) -> Key:
    try:
        file, line, name = _definition_of_python(asked(args).function)
        return Key("tracing", name, file, line)
    except Exception:  # described by `_traced`
        return Key("tracing", "")


def _called_while_tracing(functions: Functions, function: Any) -> None:
    """A function that trains and was traced before makes the function that now calls it one that trains, too."""
    trains = any_in(function, functions.trains)
    if trains is not None:
        mark_graphs(trains[1])


def _called(observer: Observer, functions: Functions, known: Known, function: Any, start: float, end: float) -> None:
    if not known.trains:
        trains = any_in(function, functions.trains)
        if trains is not None:
            known.trains = True
            known.counter = trains[1] if trains[0] else None
    kind: StreamKind = "train-function" if known.trains else "function"
    if known.stream is None or known.stream.kind != kind:
        # Streams go by the function's definition: one made anew at every call is still the same step.
        key = (kind, known.key)
        known.stream = observer.streams.get(key) or observer.streams.make(kind, key, known.name)
    known.settled = known.counter is None
    observer.ticks.tick(known.stream, start, end, 1 if known.counter is None else _steps_inside(known))


def _steps_inside(known: Known) -> int:
    """How many optimizer steps a call has made that loops inside the graph."""
    try:
        count = int(known.counter())
    except Exception:
        return 1
    n, known.last_count = count - known.last_count, count
    return max(n, 1)


def _definition(function: Any) -> tuple[str, int, str]:
    try:
        return _defined(function)
    except Exception:  # a tf.function may be made of any object that can be called
        return "", 0, "function"


def _defined(function: Any) -> tuple[str, int, str]:
    python = getattr(function, "_python_function", None) or getattr(function, "python_function", None)
    seen = 0
    while python is not None and seen < 20:
        code = getattr(python, "__code__", None)
        wrapped = getattr(python, "__wrapped__", None) or getattr(python, "__original_wrapped__", None)
        if code is not None and (wrapped is None or users_code.is_users(code)):
            return (users_code.absolute(code.co_filename), code.co_firstlineno, code.co_name)
        python = wrapped or getattr(python, "func", None) or getattr(python, "__func__", None)
        seen += 1
    name = getattr(function, "_name", None) or getattr(function, "name", None) or type(function).__name__
    if isinstance(name, bytes):
        name = name.decode("utf-8", "replace")
    return ("", 0, _short(str(name)))


def _short(name: str) -> str:
    """`__inference_signature_wrapper_123` → `signature_wrapper`"""
    name = name.removeprefix("__inference_").removeprefix("__forward_")
    head, _, tail = name.rpartition("_")
    return head if head and tail.isdigit() else name


# ── traces ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _traced(
    observer: Observer,
    functions: Functions,
    concrete: Any,
    trace: Asked,
    elapsed: float,
    outermost: bool,
) -> None:
    if trace.cache is not None and not kept_in(trace.cache):  # new: what is known under its identity was another's
        functions.trains.pop(id(trace.cache), None)
    if trace.cache is not None and (getattr(trace.graph, "_flatout_trains", False) or descends(trace.graph)):
        counter = getattr(trace.graph, "_flatout_counter", None)
        functions.trains[id(trace.cache)] = (counter is not None, counter)
    key = _definition_of_python(trace.function)
    total = functions.total(key)
    total.traces += 1
    if outermost:
        total.trace_seconds += elapsed
    functions.traces += 1
    signature = {name: _type_text(kind) for name, kind in trace.types().items()}
    previous = total.signatures
    changed = _difference(previous, signature)
    first = not previous
    again = signature in previous
    previous.append(signature)
    del previous[:-40]
    if functions.traces > MOST_TRACES:
        return
    frame = sys._getframe(2)
    observer.recorder.fact(
        "trace",
        function=list(key),
        name=trace.name,
        ms=elapsed * 1e3,
        outermost=outermost,
        first=first,
        again=again,
        changed=changed,
        at=perf_counter(),
        caller=users_code.stack(frame, 4),
        nodes=_node_count(concrete),
    )


def _definition_of_python(python: Any) -> tuple[str, int, str]:
    class Holder:
        _python_function = python
        _name = getattr(python, "__name__", "function")

    return _definition(Holder)


def _node_count(concrete: Any) -> int:
    try:
        return len(concrete.graph.get_operations())
    except Exception:
        return 0


def _difference(previous: list[dict[str, str]], signature: dict[str, str]) -> list[list[str]]:
    """[argument, before, after] against the earlier signature that is nearest."""
    if not previous:
        return []
    best: list[list[str]] | None = None
    for earlier in reversed(previous):
        changed = [
            [name, earlier.get(name, "(absent)"), signature.get(name, "(absent)")]
            for name in {**earlier, **signature}
            if earlier.get(name) != signature.get(name)
        ]
        if best is None or len(changed) < len(best):
            best = changed
    return best or []


def _type_text(kind: Any) -> str:
    """A trace type in a reader's words: `float32[32, 10]`, `1.5 (Python value)`."""
    text = _type_text_inner(kind)
    return text if len(text) < 300 else text[:297] + "…"


def _type_text_inner(kind: Any) -> str:
    name = type(kind).__name__
    if name == "Literal":
        return f"{kind.value!r} (Python {type(kind.value).__name__})"
    if hasattr(kind, "shape") and hasattr(kind, "dtype"):
        try:
            dimensions = ", ".join("?" if d is None else str(d) for d in kind.shape.as_list())
        except ValueError:
            dimensions = "…"
        return f"{kind.dtype.name}[{dimensions}]"
    if name in ("List", "Tuple"):
        parts: Any = getattr(kind, "components_tuple", kind)  # a List keeps its parts in a Tuple
        return f"({', '.join(_type_text_inner(part) for part in parts.components)})"
    if name == "Dict":
        return "{" + ", ".join(f"{k}: {_type_text_inner(v)}" for k, v in kind.mapping.items()) + "}"
    return str(kind)


PROBE = Probe("functions", tensorflow=on_tensorflow)
