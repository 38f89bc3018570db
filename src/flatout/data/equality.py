"""Compares the elements of two pipelines bit by bit, one by one, over whole epochs.

Intended differences between two runs are excluded first. A shuffle without a seed is removed from both pipelines, which
is a stricter test than comparing its results as a set. Where random numbers are drawn, the inputs of that stage are
compared. Where only the order may differ, the elements are compared as a multiset. Python code that yields another
order each time is compared as a multiset too, and has to keep varying.
"""

from __future__ import annotations

import hashlib
import itertools
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Literal

from flatout.model.evidence.pipelines import PipelineDigest
from flatout.model.vocabulary import ParityVerdict
from flatout.observe import stages
from flatout.pipeline import copies, recipes
from flatout.pipeline.fingerprints import any_order_allowed, fingerprints

EPOCHS = 2
"""The second epoch reads from caches, and has another order of shuffles."""


@dataclass(frozen=True)
class Compared:
    result: Literal["exact", "multiset", "differs"]
    elements: int
    whole: bool
    """Whether whole epochs were compared, or only the elements that there was time for."""
    note: str = ""

    @property
    def parity(self) -> ParityVerdict:
        """As a Trial names it."""
        if self.result == "differs":
            return "failed"
        return self.result if self.whole else "unknown"


def compare(before: Any, after: Any, seconds: float = 60.0, epochs: int = EPOCHS, any_order: bool = False) -> Compared:
    """Compare copies of both; neither is iterated itself. `any_order`: another order is not a difference."""
    if before.element_spec != after.element_spec:
        return Compared("differs", 0, False, f"elements were {before.element_spec} and are {after.element_spec}")
    left, right, note = _comparable(before, after)
    found = _compare_in_order(left, right, seconds, epochs)
    if found.result == "differs" and found.whole:
        if stages.runs_python(left) and _varies(source := copies.unshuffled(left, seeded=True), seconds):
            found = _compare_varying(source, copies.unshuffled(right, seeded=True), seconds)
        elif any_order or any_order_allowed(before):
            found = replace(_compare_multisets(*_comparable(before, after)[:2], seconds), note="in another order")
    return replace(found, note="; ".join(text for text in (note, found.note) if text))


def _comparable(before: Any, after: Any) -> tuple[Any, Any, str]:
    heads = copies.before_randomness(before), copies.before_randomness(after)
    note = ""
    if heads[0] is not None and heads[1] is not None:
        note = "compared up to where random numbers are drawn"
        before, after = heads
    return copies.unshuffled(before), copies.unshuffled(after), note


def _varies(dataset: Any, seconds: float) -> bool:
    """Whether a second epoch differs from the first, as far as there is time to see."""
    end = time.perf_counter() + seconds
    first = list(itertools.takewhile(lambda _: time.perf_counter() < end, fingerprints(dataset)))  # this fills a cache
    return any(one != other for one, other in zip(first, fingerprints(dataset), strict=False))


def _compare_varying(before: Any, after: Any, seconds: float) -> Compared:
    """Compare two pipelines of which the first varies from epoch to epoch."""
    rows = _compare_multisets(before, before, seconds)
    if rows.result == "differs":
        note = rows.note or "its Python code yields other elements each time, so it cannot be compared"
        return Compared("differs", rows.elements, False, note)
    if not _varies(after, seconds):
        return Compared(
            "differs", rows.elements, True, "its Python code yielded another order each time, and now always the same"
        )
    rows = _compare_multisets(before, after, seconds)
    return Compared(rows.result, rows.elements, rows.whole, rows.note or "in another order each time, as before")


def _compare_in_order(before: Any, after: Any, seconds: float, epochs: int) -> Compared:
    began, count = time.perf_counter(), 0
    for epoch in range(epochs):
        left, right = fingerprints(before), fingerprints(after)
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
    return f"element {count} differs"


def _compare_multisets(before: Any, after: Any, seconds: float) -> Compared:
    began = time.perf_counter()
    counts: list[Counter[bytes]] = []
    for dataset in (_rows(before), _rows(after)):
        found: Counter[bytes] = Counter()
        for fingerprint in fingerprints(dataset):
            found[fingerprint] += 1
            if time.perf_counter() - began > seconds:
                return Compared("differs", sum(found.values()), False, "there was no time to compare an epoch")
        counts.append(found)
    return Compared("multiset" if counts[0] == counts[1] else "differs", sum(counts[0].values()), True)


def _rows(dataset: Any) -> Any:
    """The unbatched elements: in another order, batches contain other elements."""
    batches = any("Batch" in stages.kind(stage) for stage in recipes.main_line(dataset))
    return dataset.unbatch() if batches else dataset


def digest(dataset: Any, seconds: float) -> PipelineDigest:
    """A digest of all elements of an epoch, to compare with another process."""
    began, count, total = time.perf_counter(), 0, hashlib.blake2b(digest_size=16)
    for one in fingerprints(dataset):
        total.update(one)
        count += 1
        if time.perf_counter() - began > seconds:
            return PipelineDigest(None, count, whole=False)
    return PipelineDigest(total.hexdigest(), count, whole=True)
