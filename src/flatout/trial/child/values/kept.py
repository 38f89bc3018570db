"""The values that are kept of a program, with limits on how many."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Collection
from typing import Any

from flatout.trial.child.values import file, weights
from flatout.trial.child.values.targets import Targets

SNAPSHOTS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Steps after which the weights are kept."""
MOST_STEPS = 128
MOST_OUTPUTS = 100_000
"""Elements of one kind of output that are kept."""
MOST_SERIES = 40
DENSE_UNTIL = 64
"""In a run that is only compared, the weights are kept after each step up to this one: a traced step of several updates
shows itself after the last of them."""
MOST_LAST = 64
"""Scalars of each kind that are kept of the end of a run that is only compared."""
DENSE_ELEMENTS = 30_000
"""Elements that each of these snapshots keeps."""


class Values:
    def __init__(self, directory: str, dense: bool = False, places: Collection[str] = ()) -> None:
        self.dense = dense
        self.places = places
        """Where random numbers were drawn, as far as they are pinned."""
        self.begin(directory)
        self.wanted = False  # until TensorFlow is imported: a program without it has no values

    def begin(self, directory: str) -> None:
        """Keep what is computed from now on, for the file in this directory."""
        self.directory = directory
        self.variables: list[Any] = []
        """Weak references to the trainable variables, in the order of creation."""
        self.snapshots: dict[int, dict[int, weights.Weight]] = {}
        self.series: dict[str, list[tuple[int, Any, int]]] = {}
        """By name: (call, value, steps made before)."""
        self.outputs: dict[str, list[Any]] = {}
        self.steps = 0
        """Steps that the program has made, as the gate counts them."""
        self.fit_steps = 0
        self.targets = Targets() if self.dense else None
        """Of gradients, kept by ops in the program's graphs."""
        self.session: Any = None
        """A weak reference to the last session of TF1."""
        self._last: dict[str, deque[tuple[int, Any, int]]] = {}
        """Of each series, what came after the first that are kept."""
        self._process = os.getpid()
        self._counted_by: object = None
        self._calls: dict[str, int] = {}
        self._output_sizes: dict[str, int] = {}
        self._kept = 0
        self._written = 0
        """How much was kept, and how much of it when the file was last written."""
        self._lock = threading.Lock()
        self.wanted = True
        """Whether `tick` has anything left to do: the gate reads it at every step."""

    def tick(self, count: int, counted_by: object = None) -> None:
        """The program has made `count` steps. Called by the gate while `wanted`. Where something else is counted than
        before (updates, once there is one), what was kept after so many of the former belongs to other steps."""
        if counted_by != self._counted_by:
            self._counted_by = counted_by
            self.snapshots = {}
            if self.targets is not None:
                self.targets.marks = []
        self.steps = count
        if self.targets is not None:
            self.targets.mark(count)
        if count in self.snapshots:
            return
        if count in SNAPSHOTS or (self.dense and count <= DENSE_UNTIL):
            most = DENSE_ELEMENTS if self.dense else weights.MOST_OF_ALL
            try:
                self.snapshots[count] = weights.snapshot(self.variables, self.session, most)
            except Exception:  # a variable without a value, a graph that is closed: compare without this one
                self.snapshots[count] = {}
            self._kept += 1
        if count >= SNAPSHOTS[-1] and not self.dense:
            self.wanted = False

    def finish(self) -> None:
        """The program has come to its end: with its last weights, where all is kept."""
        if os.getpid() != self._process:
            return  # a process that the program has forked
        if self.dense and self.wanted and self.steps:
            with contextlib.suppress(Exception):
                self.snapshots[self.steps] = weights.snapshot(self.variables, self.session, DENSE_ELEMENTS)
                self._kept += 1
        with contextlib.suppress(Exception):
            self.write()

    def count_call(self, name: str) -> int | None:
        """The number of this call, from 1 on; None after the last one that is kept."""
        number = self._calls.get(name, 0) + 1
        if number > MOST_STEPS and not self.dense:
            return None
        self._calls[name] = number
        return number

    def keep_scalar(self, name: str, call: int, value: Any) -> None:
        if name not in self.series and len(self.series) >= MOST_SERIES:
            return
        if call <= MOST_STEPS:
            self.series.setdefault(name, []).append((call, value, self.steps))
        elif self.dense:
            self._last.setdefault(name, deque(maxlen=MOST_LAST)).append((call, value, self.steps))
        else:
            return
        self._kept += 1

    def keep_output(self, name: str, value: Any) -> None:
        if self._output_sizes.get(name, 0) >= MOST_OUTPUTS or len(self.outputs) > MOST_SERIES:
            return
        size = 1
        for dimension in value.shape:
            size *= int(dimension)
        self._output_sizes[name] = self._output_sizes.get(name, 0) + size
        self.outputs.setdefault(name, []).append(value)
        self._kept += 1

    def keep_results(self, name: str, results: Any, call: int) -> None:
        """Keep what a call returned."""
        from tensorflow.python.util import nest

        for index, value in enumerate(nest.flatten(results)):
            if _is_floating(value):
                if len(value.shape) == 0:
                    self.keep_scalar(f"{name}[{index}]", call, value)
                else:
                    self.keep_output(f"{name}[{index}]", value)

    def write(self) -> None:
        """Write all that was kept so far, in place of what was written before."""
        if self._kept == self._written:
            return
        with self._lock:
            self._written = self._kept
            # Outputs are read once, and their tensors let go.
            self.outputs = {name: [file.flat(parts, MOST_OUTPUTS)] for name, parts in self.outputs.items()}
            series = {name: [*found, *self._last.get(name, ())] for name, found in self.series.items()}
            places = sorted(self.places)
            file.write(self.directory, self.snapshots, {**series, **self._targets()}, self.outputs, places)

    def _targets(self) -> dict[str, list[tuple[int, Any, int]]]:
        found = self.targets.series() if self.targets is not None else []
        return {"tape target": found} if found else {}


def _is_floating(value: Any) -> bool:
    """A tensor that has its value already, or an array."""
    dtype = getattr(value, "dtype", None)
    if hasattr(value, "_numpy"):
        return bool(dtype.is_floating) if dtype is not None else False
    return getattr(dtype, "kind", "") == "f" and hasattr(value, "shape")
