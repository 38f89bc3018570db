"""The values that are kept of a program, with limits on how many."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Collection
from typing import Any

from flatout.trial.child.values import file, weights
from flatout.trial.child.values.digests import Digest
from flatout.trial.child.values.leaves import leaves
from flatout.trial.child.values.targets import Targets

SNAPSHOTS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Steps after which the weights are kept."""
MOST_STEPS = 128
MOST_OUTPUTS = 100_000
"""Elements of one kind of output that are kept."""
MOST_FUNCTIONS = 40
MOST_SERIES = 40
DENSE_UNTIL = 64
"""In a run that is only compared, the weights are kept after each step up to this one: a traced step of several updates
shows itself after the last of them. From there on eight times until the steps have doubled, and as an epoch begins."""
AS_EPOCHS_BEGIN = (1, 2, 4, 8)
MOST_EPOCHS = 12
"""Epochs at whose beginning the weights are kept."""
MOST_BEGUN = 20_000
"""Beginnings of epochs that are kept: a program may begin a dataset with each step."""
COSTLY_SECONDS = 0.25
"""Where a snapshot takes longer than this, fewer are taken."""
MOST_SCALARS = 50_000
"""Scalars of each kind that are kept of the beginning of a run that is only compared."""
MOST_LAST = 64
"""Scalars of each kind that are kept of the end of such a run."""
PENDING = 64
"""Scalars that are held as the program made them; older ones become numbers."""
DENSE_ELEMENTS = 30_000
"""Elements that each of these snapshots keeps."""

Scalars = list[tuple[int, Any, int]]
"""(call, value, steps made before)."""


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
        self.others: list[Any] = []
        """The same of all other variables, in a run that is only compared: statistics, averages, slots, metrics."""
        self.snapshots: dict[int, dict[int, weights.Weight]] = {}
        self.states: dict[int, dict[str, weights.Weight]] = {}
        """What the other variables were at the same steps."""
        self.series: dict[str, Scalars] = {}
        self.outputs: dict[str, list[Any]] = {}
        self.digests: dict[str, Digest] = {}
        """All that is put out in a run that is only compared, unless it trains: that shows in its weights."""
        self.steps = 0
        """Steps that the program has made, as the gate counts them."""
        self.epochs: list[int] = []
        """Steps after which a dataset was begun."""
        self.fit_steps = 0
        self.ended = False
        self.targets = Targets() if self.dense else None
        """Of gradients, kept by ops in the program's graphs."""
        self.scores = Targets(by_place=True) if self.dense else None
        """What models put out that are not called for training, kept in the same way."""
        self.session: Any = None
        """A weak reference to the last session of TF1."""
        self._last: dict[str, deque[tuple[int, Any, int]]] = {}
        """Of each series, what came after the first that are kept."""
        self._process = os.getpid()
        self._counted_by: object = None
        self._seen_at: set[str] = set()
        """The traced functions at whose ends steps were seen."""
        self._calls: dict[str, int] = {}
        self._output_sizes: dict[str, int] = {}
        self._costly = False
        self._kept = 0
        self._written = 0
        """How much was kept, and how much of it when the file was last written."""
        self._lock = threading.Lock()
        self.wanted = True
        """Whether `tick` has anything left to do: the gate reads it at every step."""

    def begin_epoch(self) -> None:
        """The program has begun a dataset before the step that is ending now."""
        if len(self.epochs) < MOST_BEGUN and (not self.epochs or self.epochs[-1] != self.steps):
            self.epochs.append(self.steps)

    def tick(self, count: int, counted_by: object = None, seen_at: str = "") -> None:
        """The program has made `count` steps. Called by the gate while `wanted`. Where something else is counted than
        before (updates, once there is one), what was kept after so many of the former belongs to other steps."""
        if counted_by != self._counted_by:
            self._counted_by = counted_by
            self._seen_at = set()
            self.snapshots, self.states = {}, {}
            self.epochs = [0] if self.epochs else []
            for kept in filter(None, (self.targets, self.scores)):
                kept.marks = []
        self.steps = count
        if seen_at and len(self._seen_at) < MOST_FUNCTIONS:
            self._seen_at.add(seen_at)
        for kept in filter(None, (self.targets, self.scores)):
            kept.mark(count)
        if count not in self.snapshots and self._is_snapshot(count):
            self._snapshot(count)
        if count >= SNAPSHOTS[-1] and not self.dense:
            self.wanted = False

    def _is_snapshot(self, count: int) -> bool:
        if not self.dense:
            return count in SNAPSHOTS
        since = count - self.epochs[-1] if self.epochs and len(self.epochs) <= MOST_EPOCHS else 0
        if self._costly:
            return count & (count - 1) == 0 or since == 1
        return count <= DENSE_UNTIL or since in AS_EPOCHS_BEGIN or count % (1 << (count.bit_length() - 4)) == 0

    def _snapshot(self, count: int) -> None:
        most = DENSE_ELEMENTS if self.dense else weights.MOST_OF_ALL
        began = time.perf_counter()
        try:
            self.snapshots[count] = weights.snapshot(self.variables, self.session, most)
        except Exception:  # a variable without a value, a graph that is closed: compare without this one
            self.snapshots[count] = {}
        if self.others:
            with contextlib.suppress(Exception):
                self.states[count] = weights.states(self.others, self.session, most)
        self._costly = self._costly or time.perf_counter() - began > COSTLY_SECONDS
        self._kept += 1

    def finish(self) -> None:
        """The program has come to its end: with its last weights, where all is kept."""
        if os.getpid() != self._process:
            return  # a process that the program has forked
        if self.dense and self.wanted and self.steps:
            self.ended = True
            self._snapshot(self.steps + 1)  # what the program has done since its last step belongs to it
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
        found = self.series.setdefault(name, [])
        if call <= MOST_STEPS or (self.dense and len(found) < MOST_SCALARS):
            found.append((call, value, self.steps))
            if self.dense and len(found) % PENDING == 0:
                found[-PENDING:] = [(number, file.scalar(one), made) for number, one, made in found[-PENDING:]]
        elif self.dense:
            self._last.setdefault(name, deque(maxlen=MOST_LAST)).append((call, value, self.steps))
        else:
            return
        self._kept += 1

    def keep_output(self, name: str, value: Any) -> None:
        if self.dense and not self._trains() and len(self.digests) <= MOST_SERIES:
            self.digests.setdefault(name, Digest()).add(file.array(value))
            self._kept += 1
        if self._output_sizes.get(name, 0) >= MOST_OUTPUTS or len(self.outputs) > MOST_SERIES:
            return
        size = 1
        for dimension in value.shape:
            size *= int(dimension)
        self._output_sizes[name] = self._output_sizes.get(name, 0) + size
        self.outputs.setdefault(name, []).append(value)
        self._kept += 1

    def _trains(self) -> bool:
        """Whether updates of optimizers are counted as steps."""
        return isinstance(self._counted_by, tuple) and bool(self._counted_by[-1])

    def keep_results(self, name: str, results: Any, call: int) -> None:
        """Keep what a call returned."""
        for index, value in enumerate(leaves(results)):
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
            extent = {
                "places": sorted(self.places),
                "epochs": self.epochs,
                "made": self.steps,
                "ended": self.ended,
                "counts": str(self._counted_by),
                "seen_at": sorted(self._seen_at),
                "updates": self._trains(),
            }
            kept = file.Kept(self.snapshots, self.states, {**series, **self._targets()}, self.outputs, self.digests)
            file.write(self.directory, kept, extent)

    def _targets(self) -> dict[str, Scalars]:
        named = {"tape target": self.targets, "outputs of models": self.scores}
        found = {name: kept.series() for name, kept in named.items() if kept is not None}
        return {name: series for name, series in found.items() if series}


def _is_floating(value: Any) -> bool:
    """A tensor that has its value already, or an array."""
    dtype = getattr(value, "dtype", None)
    if hasattr(value, "_numpy"):
        return bool(dtype.is_floating) if dtype is not None else False
    return getattr(dtype, "kind", "") == "f" and hasattr(value, "shape")
