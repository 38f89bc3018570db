"""Where a pipeline can be cached, and a cache in memory with a limit.

The size of a cache is known in advance only if the number and the shape of the elements are. Otherwise they are counted
while the cache fills. Beyond the limit the cache keeps what it has, and the rest of each pass is computed as before:
the elements are the same in any case.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from flatout.environment import cgroup
from flatout.observe import stages
from flatout.pipeline import recipes
from flatout.pipeline.fingerprints import any_order_allowed, fingerprint

FREE = {
    "TensorSlice", "Tensor", "Range", "Counter", "Zip", "Batch", "Options", "Take", "Skip", "Shard", "Prefetch",
    "Concatenate", "Cache",
}  # fmt: skip
"""Stages whose result takes no longer to compute than to read from a cache."""
NOT_KEPT = {"Prefetch", "Options"}
"""Stages that belong behind a cache, not before it."""
HARMLESS = {"python", "lookup table"}
"""State that usually yields the same elements again; the losses show where it does not."""
INFINITE = -1
"""`tf.data.INFINITE_CARDINALITY`"""
HELD = {"TensorSpec", "RaggedTensorSpec", "SparseTensorSpec"}


def hindrance(stage: Any) -> str | None:
    """Why the elements behind this stage may differ from one pass to the next."""
    kind = stages.kind(stage)
    if kind == "Shuffle" and getattr(stage, "_reshuffle_each_iteration", True) is not False:
        return "the order changes with each epoch"
    if kind in ("Repeat", "ShuffleAndRepeat"):
        return "the elements repeat from there"
    if kind.startswith(("Random", "DataService")):
        return "the elements differ each time"
    if stages.draws(stage):
        return "its function keeps state (random)"
    for state in stages.every_state(stage):
        if state not in HARMLESS:
            return f"its function keeps state ({state})"
    return None


def costs(stage: Any) -> bool:
    """Whether anything since the last cache takes time worth saving."""
    for upstream, depth in stages.chain(stage):
        if stages.kind(upstream) in ("Cache", "Snapshot") and depth == 0:
            return False
        if stages.kind(upstream) not in FREE:
            return True
    return False


def last_cacheable(dataset: Any) -> tuple[Any | None, str]:
    """The last stage whose elements are the same in each pass and cost something; else None, and why not."""
    reason = ""
    for stage in recipes.main_line(dataset):
        if stages.kind(stage) in NOT_KEPT:
            continue
        found = next(((s, why) for s, _ in stages.chain(stage) if (why := hindrance(s)) is not None), None)
        if found is not None:
            reason = f"{stages.location(found[0])}: {found[1]}"
        elif not costs(stage):
            return None, reason or "nothing in the pipeline costs more than reading a cache"
        elif int(stage.cardinality()) == INFINITE:
            return None, f"{stages.location(stage)}: it is infinite"
        elif not can_be_held(stage.element_spec):
            return None, f"{stages.location(stage)}: its elements cannot be kept"
        else:
            return stage, ""
    return None, reason


def memory_limit() -> int:
    """A third of the memory that is free now."""
    return (cgroup.memory_left() or 1 << 30) // 3


def known_bytes(stage: Any) -> int | None:
    """What a cache behind this stage would hold, where that is known beforehand."""
    count, size = int(stage.cardinality()), stages.element_bytes(stage.element_spec)
    return count * size if count >= 0 and size is not None else None


def mib(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


class Cached:
    """A stage with a cache behind it."""

    def __init__(self, stage: Any, limit: int) -> None:
        import tensorflow as tf

        self.limit = limit
        with tf.device("CPU:0"):
            self._passes = tf.Variable(0, dtype=tf.int64, trainable=False)
            self._elements = tf.Variable(0, dtype=tf.int64, trainable=False)
            self._bytes = tf.Variable(0, dtype=tf.int64, trainable=False)
        self._stage = stage
        self._kept = (stage if known_bytes(stage) is not None else self._counted(stage)).cache()
        # What follows the cache yields nothing, unless the cache ran full; it shows that a pass is over.
        self.dataset = self._kept.concatenate(tf.data.Dataset.range(1).flat_map(lambda _: self._rest(stage)))

    @property
    def passes(self) -> int:
        """Whole passes so far; the cache is complete after the first."""
        return int(self._passes.read_value()._numpy())

    @property
    def overflown(self) -> bool:
        return bool(self._bytes.read_value()._numpy() > self.limit)

    def differs(self, seconds: float) -> str:
        """Where a second pass gives other elements than the cache holds, in words; as far as there is time to see.
        Where the program allows any order, a whole pass has to give the same elements."""
        end, ordered = time.perf_counter() + seconds, not any_order_allowed(self._stage)
        kept: Counter[bytes] = Counter()
        again: Counter[bytes] = Counter()
        second = iter(self._stage)
        for number, element in enumerate(self._kept):
            other = next(second, None)
            if other is None:
                return f"it ends after {number} elements"
            kept[fingerprint(element)] += 1
            again[fingerprint(other)] += 1
            if ordered and kept != again:
                return f"element {number} has other values"
            if time.perf_counter() > end:
                return ""
        return "" if kept == again else "there are other elements in it"

    def _counted(self, stage: Any) -> Any:
        import tensorflow as tf

        def count(state: Any, element: Any) -> Any:
            elements, size = state[0] + 1, state[1] + _bytes(element)
            with tf.control_dependencies([self._elements.assign(elements), self._bytes.assign(size)]):
                return (tf.identity(elements), tf.identity(size)), element

        zero = tf.constant(0, tf.int64)
        # A scan begins anew with each iterator: one that the program gave up half-way does not count twice.
        return stage.scan((zero, zero), count).take_while(lambda *_: self._bytes <= self.limit)

    def _rest(self, stage: Any) -> Any:
        import tensorflow as tf

        with tf.control_dependencies([self._passes.assign_add(1)]):
            overflown = self._bytes > self.limit
        everything, nothing = tf.constant(-1, tf.int64), tf.constant(0, tf.int64)
        rest = stage.take(tf.where(overflown, everything, nothing))
        # The element that went over the limit was counted but not kept.
        return rest.skip(tf.where(overflown, self._elements - 1, nothing))


def _bytes(element: Any) -> Any:
    import tensorflow as tf

    total = tf.constant(0, tf.int64)
    for tensor in tf.nest.flatten(element, expand_composites=True):
        count = tf.size(tensor, out_type=tf.int64)
        if tensor.dtype == tf.string:
            total += tf.reduce_sum(tf.cast(tf.strings.length(tensor), tf.int64)) + 24 * count
        else:
            total += count * int(tensor.dtype.size)
    return total


def can_be_held(spec: Any) -> bool:
    import tensorflow as tf

    return all(type(leaf).__name__ in HELD for leaf in tf.nest.flatten(spec))
