"""The targets of gradients, written down by ops: a traced step shows them as an eager one does.

For runs that are only compared. The ops stand in the program's own graphs.
"""

from __future__ import annotations

from typing import Any

FIRST = 256
LAST = 64
"""Targets that are kept of the beginning of the run and of its end."""


class Targets:
    def __init__(self) -> None:
        self._log: Any = None
        self._count: Any = None
        self.marks: list[tuple[int, int]] = []
        """Steps made, and how many targets there were by then."""

    def keep(self, target: Any) -> None:
        """At each execution of this place, the sum of the target becomes one entry."""
        from tensorflow.python.distribute import distribute_lib
        from tensorflow.python.eager import context, record
        from tensorflow.python.framework import func_graph, ops
        from tensorflow.python.util import nest

        graph = ops.get_default_graph()
        eager = context.executing_eagerly()
        if not eager and not isinstance(graph, func_graph.FuncGraph):
            return  # of TF1: what its sessions fetch is kept
        if distribute_lib.has_strategy() or (not eager and "loop_body" in graph.get_name_scope()):
            return  # several replicas, or a loop that TensorFlow turns into one batch: neither has an order
        tensors = [one for one in nest.flatten(target) if getattr(getattr(one, "dtype", None), "is_floating", False)]
        if tensors:
            self._make()
            with record.stop_recording():
                self._append(tensors)

    def _append(self, tensors: list[Any]) -> None:
        from tensorflow.python.framework import dtypes
        from tensorflow.python.ops import array_ops, gen_resource_variable_ops, math_ops

        total = math_ops.add_n([math_ops.cast(math_ops.reduce_sum(one), dtypes.float64) for one in tensors])
        count = gen_resource_variable_ops.read_variable_op(self._count.handle, dtypes.int64)
        log = gen_resource_variable_ops.read_variable_op(self._log.handle, dtypes.float64)
        place = array_ops.where_v2(count < FIRST, count, FIRST + math_ops.floormod(count - FIRST, LAST))
        log = array_ops.where_v2(math_ops.equal(math_ops.range(FIRST + LAST, dtype=dtypes.int64), place), total, log)
        gen_resource_variable_ops.assign_variable_op(self._log.handle, log)
        gen_resource_variable_ops.assign_add_variable_op(self._count.handle, math_ops.cast(1, dtypes.int64))

    def _make(self) -> None:
        from tensorflow.python.framework import dtypes, ops
        from tensorflow.python.ops import resource_variable_ops

        if self._log is None:
            with ops.init_scope():
                make = resource_variable_ops.ResourceVariable
                self._count = make(0, trainable=False, dtype=dtypes.int64, name="flatout_targets")
                self._log = make([0.0] * (FIRST + LAST), trainable=False, dtype=dtypes.float64, name="flatout_targets")

    def mark(self, steps: int) -> None:
        """The program has made so many steps."""
        if self._count is not None and (not self.marks or self.marks[-1][0] != steps):
            self.marks.append((steps, int(self._count.numpy())))

    def series(self) -> list[tuple[int, Any, int]]:
        """(call, value, steps made before)."""
        if self._count is None:
            return []
        log, count = self._log.numpy(), int(self._count.numpy())
        calls = [*range(min(count, FIRST)), *range(max(FIRST, count - LAST), count)]
        places = (call if call < FIRST else FIRST + (call - FIRST) % LAST for call in calls)
        return [(call + 1, log[place], self._made_before(call + 1)) for call, place in zip(calls, places, strict=True)]

    def _made_before(self, number: int) -> int:
        return max((steps for steps, count in self.marks if count < number), default=0)
