"""A cheap function is mapped over single elements where one call per batch would do.

## What it is
`map` comes before `batch`, so the function runs once per element, although its operations work on a whole
batch just as well.

## Why it costs
Each call of a map function costs some microseconds of dispatch, whatever it computes. With a tiny function
that is all of the cost: on one machine 26.3 µs per element mapped singly against 2.05 µs mapped after the
batch. Parsing shows the same: 49 µs for `parse_single_example` against 5.7 µs per element for
`parse_example` on batches. TensorFlow fuses `map` and `batch` into one stage, which saves a handover but
not the calls.

## How it looks
```python
dataset = (
    tf.data.TFRecordDataset(files)
    .map(lambda record: tf.io.parse_single_example(record, features))
    .map(lambda row: (row["pixels"] / 255.0, row["label"]))
    .batch(256)
)
```

## The cure
```python
dataset = (
    tf.data.TFRecordDataset(files)
    .batch(256)
    .map(lambda records: tf.io.parse_example(records, features))
    .map(lambda rows: (rows["pixels"] / 255.0, rows["label"]))
)
```
- `vectorize-map`: exact for elementwise functions; flatout compares the elements of both forms before it
  calls the change a cure. A reduction over all axes, a shape computed from one element or a random draw per
  element means something else on a batch.

## When it is not worth it
When the function does heavy work per element (decoding, resizing), the dispatch does not show. Elements of
different shapes cannot be batched before they have been brought to one shape.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.case import Case, Finding, Fix
from flatout.causes import autotune_off, reading, uncached_prefix

GROUP = "input"
LEVERS = ("vectorize-map",)
YIELDS_TO = ("uncached-prefix",)


def in_run(case: Case) -> Iterator[Finding]:
    hot = reading.hot_stage(case)
    if hot is None or "Map" not in hot.stage.name or hot.stage.name == "FlatMap" or hot.stage.stateful is not None:
        return
    if any(autotune_off.in_run(case)) or hot.stage.detail.get("by") == "keras":
        return
    parses = any(op.startswith("ParseSingle") or op == "ParseExampleV2" for op in hot.stage.detail.get("ops") or {})
    cheap = hot.per_sample_ms < uncached_prefix.CHEAP_MS
    if not hot.before_batch or hot.batch < 4 or not (cheap or parses):
        return
    what = "parses one record at a time" if parses else "does very little for each element"
    yield from reading.finding(
        "late-batch",
        case,
        f"A map before the batch {what} ({hot.per_sample_ms * 1e3:.0f} µs), so calling it costs more than its work.",
        cost_ms=hot.wait_ms,
        where=hot.stage.where,
        evidence=[
            *reading.wait_evidence(case, hot),
            reading.number(
                "per-element",
                hot.per_sample_ms,
                "ms",
                "busy time of the map for one element",
                "tf.data model",
            ),
        ],
        fixes=[
            Fix(
                "Batch first and map whole batches" + (" with tf.io.parse_example." if parses else "."),
                lever="vectorize-map",
            )
        ],
        estimate="the wait that the trace shows",
    )
