"""Whether two pipelines give the same elements: compared to the bit, one by one, over whole epochs.

What differs from one run to the next by the program's own wish is taken out of the comparison first. A shuffle without
a seed is left out of both pipelines, which says more than comparing its results as a set. Where random numbers are
drawn, what enters that stage is compared. Where the order alone may differ, the elements are compared as a multiset.
Python code that gives another order each time is held to the same: as a multiset, and it must go on varying.
"""

from __future__ import annotations

import hashlib
import itertools
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from flatout.model.evidence.pipelines import PipelineDigest
from flatout.model.vocabulary import ParityVerdict
from flatout.observe import stages
from flatout.pipeline import copying, recipes

EPOCHS = 2
"""The second one reads what a cache has kept, and a shuffle has another order then."""


@dataclass(frozen=True)
class Compared:
    result: Literal["exact", "multiset", "differs"]
    elements: int
    whole: bool
    """Whether whole epochs were compared, or only as much as there was time for."""
    note: str = ""

    @property
    def parity(self) -> ParityVerdict:
        """In the words of a Trial."""
        if self.result == "differs":
            return "failed"
        return self.result if self.whole else "unknown"


def compare(before: Any, after: Any, seconds: float = 60.0, epochs: int = EPOCHS, any_order: bool = False) -> Compared:
    """Both are copied first: neither is iterated. `any_order`: another order is no difference."""
    if before.element_spec != after.element_spec:
        return Compared("differs", 0, False, f"elements were {before.element_spec} and are {after.element_spec}")
    left, right, note = _comparable(before, after)
    found = _in_order(left, right, seconds, epochs)
    if found.result == "differs" and found.whole:
        if stages.runs_python(left) and _varies(source := copying.unshuffled(left, seeded=True), seconds):
            found = _as_varied(source, copying.unshuffled(right, seeded=True), seconds)
        elif any_order or _any_order(before):
            found = replace(_as_multisets(*_comparable(before, after)[:2], seconds), note="in another order")
    return replace(found, note="; ".join(text for text in (note, found.note) if text))


def _comparable(before: Any, after: Any) -> tuple[Any, Any, str]:
    heads = copying.before_randomness(before), copying.before_randomness(after)
    note = ""
    if heads[0] is not None and heads[1] is not None:
        note = "compared up to where random numbers are drawn"
        before, after = heads
    return copying.unshuffled(before), copying.unshuffled(after), note


def _varies(dataset: Any, seconds: float) -> bool:
    """Whether a second epoch is another one than the first, as far as there is time to see."""
    end = time.perf_counter() + seconds
    first = list(itertools.takewhile(lambda _: time.perf_counter() < end, marks(dataset)))  # a cache is full now
    return any(one != other for one, other in zip(first, marks(dataset), strict=False))


def _as_varied(before: Any, after: Any, seconds: float) -> Compared:
    """Of two pipelines of which the first varies."""
    rows = _as_multisets(before, before, seconds)
    if rows.result == "differs":
        note = rows.note or "its Python code gives other elements each time, so nothing can be compared"
        return Compared("differs", rows.elements, False, note)
    if not _varies(after, seconds):
        return Compared("differs", rows.elements, True, "its Python code gave another order each time, now always one")
    rows = _as_multisets(before, after, seconds)
    return Compared(rows.result, rows.elements, rows.whole, rows.note or "in another order each time, as before")


def _any_order(dataset: Any) -> bool:
    """Whether the program has asked for no certain order."""
    if dataset.options().deterministic is False:
        return True
    chain = [stage for stage, _ in stages.chain(dataset)]
    return any(stages.kind(stage) == "Shuffle" or getattr(stage, "_deterministic", "") == "false" for stage in chain)


def _in_order(before: Any, after: Any, seconds: float, epochs: int) -> Compared:
    began, count = time.perf_counter(), 0
    for epoch in range(epochs):
        left, right = marks(before), marks(after)
        while True:
            one, other = next(left, None), next(right, None)
            if one != other:
                return Compared("differs", count, True, _difference(one, other, epoch, count))
            if one is None:
                break
            count += 1
            if time.perf_counter() - began > seconds:
                return Compared("exact", count, False, f"over {count:,} elements; there was no time for a whole epoch")
    return Compared("exact", count, True)


def _difference(one: bytes | None, other: bytes | None, epoch: int, count: int) -> str:
    if one is None or other is None:
        return f"epoch {epoch + 1} has {'more' if one is None else 'fewer'} elements than it had"
    return f"element {count} is another one"


def _as_multisets(before: Any, after: Any, seconds: float) -> Compared:
    began = time.perf_counter()
    counts: list[Counter[bytes]] = []
    for dataset in (_rows(before), _rows(after)):
        found: Counter[bytes] = Counter()
        for mark in marks(dataset):
            found[mark] += 1
            if time.perf_counter() - began > seconds:
                return Compared("differs", sum(found.values()), False, "there was no time to compare an epoch")
        counts.append(found)
    return Compared("multiset" if counts[0] == counts[1] else "differs", sum(counts[0].values()), True)


def _rows(dataset: Any) -> Any:
    """Single elements again, where the pipeline makes batches: each batch is another one in another order."""
    batches = any("Batch" in stages.kind(stage) for stage in recipes.main_line(dataset))
    return dataset.unbatch() if batches else dataset


def digest(dataset: Any, seconds: float) -> PipelineDigest:
    """All elements of an epoch in one number, for a comparison with another process."""
    began, count, total = time.perf_counter(), 0, hashlib.blake2b(digest_size=16)
    for one in marks(dataset):
        total.update(one)
        count += 1
        if time.perf_counter() - began > seconds:
            return PipelineDigest(None, count, whole=False)
    return PipelineDigest(total.hexdigest(), count, whole=True)


def marks(dataset: Any) -> Iterator[bytes]:
    """A fingerprint of each element: types, shapes and every bit."""
    for element in dataset:
        yield mark(element)


def mark(element: Any) -> bytes:
    import numpy as np
    import tensorflow as tf

    digest = hashlib.blake2b(digest_size=16)
    for tensor in tf.nest.flatten(element, expand_composites=True):
        values = np.asarray(tensor)
        digest.update(f"{values.dtype}{values.shape}".encode())
        if values.dtype == object:
            for text in values.reshape(-1):
                digest.update(len(text).to_bytes(8, "little") + text)
        else:
            digest.update(np.ascontiguousarray(values).tobytes())
    return digest.digest()
