"""What the main thread is in the middle of, as a tree of spans with exact seconds.

A span is entered and left at few places: `fit`, `evaluate`, `predict`, the hooks of callbacks, checkpoints, summaries,
traces. Its seconds are added to the node for its path, so that ten million calls take no more memory than one. Where in
the source the time of a node goes is found by samples (`run_sampler.py`).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from time import perf_counter
from typing import Any, NamedTuple

MOST_NODES = 1000


class Key(NamedTuple):
    kind: str
    """What the time is spent on; a word of `model.run_tree.PartKind` or one that `reading/run_tree.py` resolves."""
    name: str
    file: str = ""
    line: int = 0


class Node:
    __slots__ = ("aside", "calls", "children", "key", "number", "parent", "seconds")

    def __init__(self, number: int, key: Key, parent: Node | None) -> None:
        self.number = number
        self.key = key
        self.parent = parent
        self.children: dict[Key, Node] = {}
        self.calls = 0
        self.seconds = 0.0
        of_fit = parent is not None and parent.key.kind == "fit"
        self.aside: bool = (of_fit and key.kind not in ("steps", "epoch-start")) or (
            parent is not None and parent.aside
        )
        """Inside of `fit`, but in no step: validation, what callbacks do after an epoch."""


class Spans:
    """Inactive until `begin`: then nothing is entered, and what asks only pays for a comparison."""

    def __init__(self) -> None:
        self.active = False
        self.awaits_batch = False
        """An epoch of `fit` has begun, and none of its batches has ended."""
        self.fresh: Any = None
        """A weak reference to a dataset iterator of which nothing was taken yet. `fit` takes all of them in a
        graph, and lets go of its buffers at the end."""
        self.nodes: list[Node] = [Node(0, Key("run", ""), None)]
        self.current = self.nodes[0]
        self._entered: list[tuple[float, Node]] = []
        """When each span under way began, and the one around it. Where there are too many nodes, that is the same."""
        self._thread = 0
        self._taken = self._began = 0.0

    def begin(self) -> None:
        """From here on, in this thread."""
        self._thread = threading.get_ident()
        self.active = True

    def stop(self) -> None:
        self.active = self.awaits_batch = False
        self.fresh = None

    @property
    def here(self) -> bool:
        return self.active and threading.get_ident() == self._thread

    def is_in(self, kind: str) -> bool:
        """Whether the innermost span is of this kind."""
        return self.current.key.kind == kind

    def within(self, kind: str) -> bool:
        node: Node | None = self.current
        while node is not None:
            if node.key.kind == kind:
                return True
            node = node.parent
        return False

    def enter(self, key: Key) -> int:
        """Begin a span. Returns what `leave` wants."""
        around, self.current = self.current, self._child(key)
        self._entered.append((perf_counter(), around))
        return len(self._entered) - 1

    def leave(self, depth: int) -> None:
        """End the span that was entered at this depth, and all inside of it that nobody has ended."""
        now = perf_counter()
        while len(self._entered) > depth:
            node, (began, around) = self.current, self._entered.pop()
            node.calls += 1
            if node is not around:
                node.seconds += now - began
            self.current = around

    def leave_if(self, *kinds: str) -> None:
        """End the innermost span where it is of one of these kinds."""
        if self._entered and self.current.key.kind in kinds:
            self.leave(len(self._entered) - 1)

    def go_on(self, kind: str) -> None:
        """End the innermost span where it is of this kind and will be entered once more: that is one call."""
        if self._entered and self.current.key.kind == kind:
            self.current.calls -= 1
            self.leave(len(self._entered) - 1)

    @contextlib.contextmanager
    def of_flatout(self) -> Iterator[None]:
        """What flatout does inside is no time of the program's."""
        outermost = not self.at_work
        if outermost:
            self._began = perf_counter()
        depth = self.enter(Key("observer", "flatout")) if self.here else None
        try:
            yield
        finally:
            if depth is not None:
                self.leave(depth)
            if outermost:
                self._taken, self._began = self.taken(), 0.0

    @property
    def at_work(self) -> bool:
        """Whether flatout does something of its own in the midst of the program."""
        return self._began > 0.0

    def taken(self) -> float:
        """Seconds that this has cost the program."""
        return self._taken + (perf_counter() - self._began if self.at_work else 0.0)

    def first_batch(self) -> None:
        """The first batch of an epoch of `fit` has ended: what comes from here on are steps."""
        self.awaits_batch = False
        if self.here and self.is_in("epoch-start"):
            name = self.current.key
            self.leave_if("epoch-start")
            self.enter(Key("steps", "fit", name.file, name.line))

    def _child(self, key: Key) -> Node:
        node = self.current.children.get(key)
        if node is None:
            if len(self.nodes) >= MOST_NODES:
                key = Key(key.kind, "further")
                node = self.current.children.get(key)
                if node is not None or len(self.nodes) >= 2 * MOST_NODES:
                    return node or self.current
            node = Node(len(self.nodes), key, self.current)
            self.nodes.append(node)
            self.current.children[key] = node
        return node

    def rows(self, now: float) -> list[list[Any]]:
        """[number, parent, kind, name, file, line, calls, seconds] of each node; spans under way count as far as they
        are. Called from another thread: the copies are made first."""
        entered, node = list(self._entered), self.current
        under_way: dict[int, float] = {}
        for began, around in reversed(entered):
            if node is not around:
                under_way[node.number] = under_way.get(node.number, 0.0) + now - began
            node = around
        return [
            [n.number, n.parent.number if n.parent else -1, *n.key, n.calls, n.seconds + under_way.get(n.number, 0.0)]
            for n in list(self.nodes)
        ]
