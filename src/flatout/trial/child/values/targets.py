"""The targets of gradients, and what models put out, written down by ops: a traced step shows them as an eager one.

For runs that are only compared. The ops stand in the program's own graphs.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from flatout.trial.child.values.leaves import leaves
from flatout.trial.child.values.tapes import tapes

SIZE = 512
"""Targets that the ops keep; they are read before so many more have come."""
MOST = 200_000


class Targets:
    def __init__(self, by_place: bool = False) -> None:
        """`by_place`: elements count by their place, so that those that change places show."""
        self._by_place = by_place
        self._log: Any = None
        self._count: Any = None
        self._read: list[float | None] = []
        """Those that were read so far; None: it was written over before it could be read."""
        self.marks: list[tuple[int, int]] = []
        """Steps made, and how many targets there were by then."""

    def keep(self, target: Any) -> None:
        """At each execution of this place, the sum of the target becomes one entry."""
        from tensorflow.python.distribute import distribute_lib
        from tensorflow.python.eager import context
        from tensorflow.python.framework import func_graph, ops

        graph = ops.get_default_graph()
        eager = context.executing_eagerly()
        if not eager and not isinstance(graph, func_graph.FuncGraph):
            return  # of TF1: what its sessions fetch is kept
        if distribute_lib.has_strategy() or (not eager and "loop_body" in graph.get_name_scope()):
            return  # several replicas, or a loop that TensorFlow turns into one batch: neither has an order
        tensors = [one for one in leaves(target) if getattr(getattr(one, "dtype", None), "is_floating", False)]
        if tensors:
            self._make()
            with tapes().stop_recording():
                self._append(tensors)

    def _append(self, tensors: list[Any]) -> None:
        from tensorflow.python.framework import dtypes
        from tensorflow.python.ops import array_ops, gen_resource_variable_ops, math_ops

        total = math_ops.add_n([self._sum(one) for one in tensors])
        count = gen_resource_variable_ops.read_variable_op(self._count.handle, dtypes.int64)
        log = gen_resource_variable_ops.read_variable_op(self._log.handle, dtypes.float64)
        place = math_ops.floormod(count, SIZE)
        log = array_ops.where_v2(math_ops.equal(math_ops.range(SIZE, dtype=dtypes.int64), place), total, log)
        gen_resource_variable_ops.assign_variable_op(self._log.handle, log)
        gen_resource_variable_ops.assign_add_variable_op(self._count.handle, math_ops.cast(1, dtypes.int64))

    def _sum(self, tensor: Any) -> Any:
        from tensorflow.python.framework import dtypes
        from tensorflow.python.ops import array_ops, math_ops

        if not self._by_place:
            return math_ops.cast(math_ops.reduce_sum(tensor), dtypes.float64)
        flat = math_ops.cast(array_ops.reshape(tensor, [-1]), dtypes.float64)
        places = math_ops.cast(math_ops.range(array_ops.size(flat)), dtypes.float64)
        return math_ops.reduce_sum(flat * math_ops.cos(places * 3**0.5))

    def _make(self) -> None:
        from tensorflow.python.framework import dtypes, ops
        from tensorflow.python.ops import resource_variable_ops

        if self._log is None:
            with ops.init_scope():
                make = resource_variable_ops.ResourceVariable
                self._count = make(0, trainable=False, dtype=dtypes.int64, name="flatout_targets")
                self._log = make([0.0] * (SIZE), trainable=False, dtype=dtypes.float64, name="flatout_targets")

    def mark(self, steps: int) -> None:
        """The program has made so many steps. Nothing is kept of what comes after the last target that is."""
        if self._count is None or len(self._read) >= MOST:
            return
        if not self.marks or self.marks[-1][0] != steps:
            count = int(self._count.numpy())
            self.marks.append((steps, count))
            if count - len(self._read) > SIZE // 2:
                self._collect(count)

    def _collect(self, count: int) -> None:
        """Read what has come."""
        log, known, count = self._log.numpy(), len(self._read), min(count, MOST + SIZE)
        if known < MOST:
            self._read += [None if count - n > SIZE else float(log[n % SIZE]) for n in range(known, count)]

    def series(self) -> list[tuple[int, Any, int]]:
        """(call, value, steps made before)."""
        if self._count is None:
            return []
        self._collect(int(self._count.numpy()))
        counts = [count for _, count in self.marks]
        return [
            (number, value, self._made_before(number, counts))
            for number, value in enumerate(self._read, 1)
            if value is not None
        ]

    def _made_before(self, number: int, counts: list[int]) -> int:
        place = bisect_left(counts, number)
        return self.marks[place - 1][0] if place else 0
