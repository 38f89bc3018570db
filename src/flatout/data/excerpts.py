"""Copies of a pipeline that are short enough to be raced, and how many elements a pipeline has."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from flatout.data import inspection
from flatout.data.contestant import Pipeline
from flatout.pipeline import caching, copies, runtime_model, stage_costs

RACED_SECONDS = 0.8
"""How long an epoch of the copies in a race should take."""
COUNTED = 256


def excerpts_of(given: Any, costs: stage_costs.Costs) -> Callable[[Any], Pipeline]:
    """A function that copies this pipeline or a rewrite of it: whole epochs if they are short, else fewer records."""
    run = runtime_model.look(copies.soon(given), RACED_SECONDS)
    records = None if run.ended else _records_for(given, run.elements, costs)
    if records is None:  # short, or it is not known what its records are
        return lambda dataset: Pipeline(copies.fresh(dataset), run.elements)
    return lambda dataset: _cut(dataset, records, run.elements)


def _records_for(given: Any, elements: int, costs: stage_costs.Costs) -> int | None:
    """How many records give about this many elements of the last stage."""
    counts = inspection.counts_for_each(given, costs)
    heads = [counts.get(id(stage)) for stage in copies.record_stages(given)]
    each = max((count for count in heads if count), default=None)
    return max(round(elements * each), 1) if each is not None else None


def _cut(dataset: Any, records: int, elements: int) -> Pipeline:
    short = copies.limited(dataset, records)
    return Pipeline(short, sum(1 for _ in short.take(elements)))


def count(stage: Any, seconds: float) -> int | None:
    """Elements of one epoch, counted if the dataset does not know; None if that takes too long."""
    known = int(stage.cardinality())
    if known >= 0 or known == caching.INFINITE:
        return known if known >= 0 else None
    found, until = 0, time.monotonic() + seconds
    for window in copies.fresh(stage).window(COUNTED):
        found += int(_first(window).cardinality())
        if time.monotonic() > until:
            return None
    return found


def _first(window: Any) -> Any:
    """A window of tuples is a tuple of windows, all of one length."""
    while not hasattr(window, "cardinality"):
        window = next(iter(window.values() if isinstance(window, dict) else window))
    return window
