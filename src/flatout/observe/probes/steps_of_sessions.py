"""Steps of TF1 programs: `Session.run`, by what it fetches, what is fed to it, and whether its graph still grows."""

from __future__ import annotations

import contextlib
import re
import weakref
from time import perf_counter
from types import ModuleType
from typing import Any

from flatout.observe.observer import Observer, Probe
from flatout.observe.private_names import Wrap, patch
from flatout.observe.probes.graphs import line_of
from flatout.observe.streams import Stream
from flatout.observe.ticks import CALL
from flatout.source import users_code

NUMBERED = re.compile(r"_\d+(?=$|[:,/])")
"""`Mean_7:0` is the eighth op of that name."""


class Growth:
    """Ops that are added to a graph between its runs. The session has to take over and place the graph each time."""

    def __init__(self) -> None:
        self.graph: Any = lambda: None
        """A weak reference: a graph that the program lets go of is not held here."""
        self.version = 0
        self.runs = 0
        self.grown = 0
        self.added = 0
        self.lines: dict[Any, int] = {}

    def look(self, graph: Any) -> bool:
        """Before a run: has the graph grown since the last one?"""
        version = graph.version
        self.runs += 1
        grown = graph is self.graph() and version != self.version
        if grown:
            self.grown += 1
            self.added += version - self.version
            if self.grown & (self.grown - 1) == 0:  # the 1st, 2nd, 4th, 8th time: to list the ops takes a while
                line = line_of(graph.get_operations()[-1], {})
                self.lines[line] = self.lines.get(line, 0) + 1
        if graph is not self.graph():
            self.graph = weakref.ref(graph)
        self.version = version
        return grown

    def rows(self) -> list[list[Any]]:
        return [[*line, count] for line, count in self.lines.items() if line is not None]


class Feeds:
    """What is fed to sessions, by the user's line."""

    def __init__(self) -> None:
        self.rows: dict[Any, list[Any]] = {}
        """Runs, bytes, seconds, seconds inside TensorFlow, stream, bytes converted, which feeds those are."""

    def add(self, feed_dict: Any, stream: Stream, seconds: float, inside: float) -> None:
        where = users_code.here() or ("", 0, "")
        row = self.rows.setdefault(where, [0, 0, 0.0, 0.0, stream.id, 0, []])
        row[0] += 1
        row[1] += sum(map(_size, feed_dict.values()))
        row[2] += seconds
        row[3] += inside
        for position, converted in enumerate(map(_converted, feed_dict, feed_dict.values())):
            if converted:
                row[5] += converted
                if position not in row[6]:
                    row[6].append(position)


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    feeds, growth, inside = Feeds(), Growth(), [0.0]

    def write() -> None:
        if feeds.rows:
            observer.recorder.fact("feeds", rows=[[*where, *row] for where, row in feeds.rows.items()])
        if growth.grown:
            observer.recorder.fact(
                "graph-growth", runs=growth.runs, grown=growth.grown, added=growth.added, rows=growth.rows()
            )

    def wrap_graph_run(original: Any) -> Any:
        def _call_tf_sessionrun(self: Any, *args: Any, **kwargs: Any) -> Any:
            start = perf_counter()
            try:
                return original(self, *args, **kwargs)
            finally:
                inside[0] += perf_counter() - start

        return _call_tf_sessionrun

    observer.hooks.at_flush.append(write)
    patch("session-run", _count_runs(observer, feeds, growth, inside))
    patch("session-graph-run", wrap_graph_run)


def _count_runs(observer: Observer, feeds: Feeds, growth: Growth, inside: list[float]) -> Wrap:
    thread, ticks, streams = observer.thread, observer.ticks, observer.streams
    spans = observer.spans
    kept: Any = weakref.WeakSet()

    def count(graph: Any, fetches: Any, feed_dict: Any, grown: bool, times: tuple[float, float]) -> None:
        stream = streams.get(key := ("session", _key(fetches)))
        if stream is None and grown:  # an op of the same line, made once more
            stream = streams.get(("session", NUMBERED.sub("", key[1])))
        if stream is None:
            stream = streams.make("session", key, key[1][:200])
            if graph not in kept:
                kept.add(graph)
                observer.shared.keep_graph(graph)
        with contextlib.suppress(Exception):  # the session tells the program what is wrong with it
            if feed_dict:
                feeds.add(feed_dict, stream, times[1] - times[0], inside[0])
        ticks.tick(stream, *times)

    def wrap(original: Any) -> Any:
        def run(self: Any, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
            busy = thread.busy
            if busy & CALL:
                return original(self, fetches, feed_dict, options, run_metadata)
            grown = False
            with contextlib.suppress(Exception):  # whatever a graph may be
                grown = growth.look(self.graph)
            thread.busy = busy | CALL
            inside[0] = 0.0
            start = perf_counter()
            try:
                return original(self, fetches, feed_dict, options, run_metadata)
            finally:
                end = perf_counter()
                thread.busy = busy
                ticks.call += inside[0]
                if not (spans.here and spans.within("checkpoint")):  # what a Saver runs is no step
                    count(self.graph, fetches, feed_dict, grown, (start, end))

        return run

    return wrap


def _size(value: Any) -> int:
    """Bytes of an array; of a list as many as its numbers take, of a scalar the eight of one number."""
    if isinstance(value, (list, tuple)):
        return len(value) * _size(value[0]) if value else 0
    return int(getattr(value, "nbytes", 8))


def _converted(tensor: Any, value: Any) -> int:
    """Bytes that the session has to convert before it can feed them."""
    dtype = getattr(value, "dtype", None)
    wanted = getattr(getattr(tensor, "dtype", None), "as_numpy_dtype", None)
    return int(value.nbytes) if dtype is not None and wanted is not None and dtype != wanted else 0


def _key(fetches: Any) -> str:
    """What a run does: the operations it fetches (`train`), or all names where it fetches values only."""
    try:
        names = _names(fetches).split(",")
    except Exception:  # of the text of the program's own objects
        return type(fetches).__name__
    operations = [name for name in names if ":" not in name]
    return ",".join(operations or names)


def _names(fetches: Any) -> str:
    if isinstance(fetches, (list, tuple)):
        return ",".join(_names(one) for one in fetches)
    if isinstance(fetches, dict):
        return ",".join(_names(one) for one in fetches.values())
    return str(getattr(fetches, "name", fetches))[:80]


PROBE = Probe("steps_of_sessions", tensorflow=on_tensorflow)
