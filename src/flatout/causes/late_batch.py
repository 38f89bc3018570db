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

import ast
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.source.analysis import datasets
from flatout.source.analysis.call_summary import CallSummary
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import argument, constant, last_name

ONE_AT_A_TIME = (
    *("ReadFile", "DecodeImage", "DecodeJpeg", "DecodeAndCropJpeg", "DecodePng", "DecodeBmp", "DecodeGif"),
    *("DecodeWebP", "DecodeWav", "ExtractJpegShape"),
)
"""Ops that take one file or one image: a map that calls them cannot work on batches."""


def in_run(case: Case) -> Iterator[Finding]:
    hot = queries.hot_stage(case)
    if hot is None or "Map" not in hot.stage.name or hot.stage.name == "FlatMap" or hot.stage.stateful is not None:
        return
    if hot.stage.detail.by_keras:
        return
    if any(op in ONE_AT_A_TIME for op in hot.stage.detail.ops or {}):
        return
    parses = any(op.startswith("ParseSingle") or op == "ParseExampleV2" for op in hot.stage.detail.ops or {})
    cheap = hot.per_sample_ms < queries.CHEAP_MS
    if not hot.before_batch or hot.batch < 4 or not (cheap or parses):
        return
    what = "parses one record at a time" if parses else "does very little for each element"
    yield from queries.finding(
        "late-batch",
        case,
        f"A map before the batch {what} ({hot.per_sample_ms * 1e3:.0f} µs), so calling it costs more than its work.",
        cost_ms=hot.wait_ms,
        where=hot.stage.where,
        evidence=[
            *queries.wait_evidence(case, hot),
            queries.number(
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


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

_PARSE = ("tensorflow.io.parse_single_example", "tensorflow.parse_single_example")
_ON_BATCHES = (
    *_PARSE,
    "tensorflow.io.FixedLenFeature",
    "tensorflow.FixedLenFeature",
    "tensorflow.cast",
    "tensorflow.one_hot",
    "tensorflow.math.",
    "tensorflow.divide",
    "tensorflow.multiply",
    "tensorflow.subtract",
    "tensorflow.add",
    "tensorflow.identity",
    "tensorflow.string_to_number",
    "tensorflow.strings.to_number",
    "tensorflow.strings.lower",
)
"""What gives the same for a batch as for its elements one by one."""
_HARMLESS = frozenset(
    [
        "items",
        "keys",
        "values",
        "pop",
        "get",
        "append",
        "update",
        "copy",
        "dict",
        "list",
        "tuple",
        "zip",
        "range",
        "len",
        "int",
        "float",
    ]
)
_KEEPS_ORDER = ("shuffle", "repeat", "prefetch", "cache", "take", "skip", "with_options", "shard")


@pattern("parse-one-by-one", calls=("batch",), words=("parse_single_example",), seldom=True)
def _parse_one_by_one(call: ast.Call, site: Site) -> Iterator[Match]:
    """`.map(parse).batch(n)`, where parse does nothing that a batch could not go through."""
    if constant(argument(call, 0, "batch_size")) == 1:
        return
    chain = datasets.before(call, site)
    between = []
    for stage in reversed(chain.stages):
        if stage.name == "map":
            done = stage.function
            if chain.certain and _works_on_batches(done, _ON_BATCHES) and done.first(*_PARSE) is not None:
                yield Match(
                    stage.call,
                    "Records are parsed one at a time before they are batched.",
                    "Batch the records first and parse whole batches with tf.io.parse_example.",
                    report_at=stage.call.args[0] if stage.call.args else None,
                    confidence="low" if _has_few_features(done) else "high",
                )
            return
        between.append(stage.name)
        if stage.name not in _KEEPS_ORDER:
            return


_FEW_FEATURES = 4
"""Numbers and lists of a record whose parsing takes some microseconds, beside steps of milliseconds."""


def _has_few_features(done: CallSummary) -> bool:
    """Whether the records are seen to have some few features of fixed length."""
    for name, call, site in done.calls:
        if name not in _PARSE:
            continue
        known = argument(call, 1, "features")
        if isinstance(known, ast.Name):
            bound = datasets.value_of(known.id, site)
            known = bound[0] if bound is not None else None
        return isinstance(known, ast.Dict) and None not in known.keys and len(known.keys) <= _FEW_FEATURES
    return False


@pattern("cheap-map", calls=("batch",), words=("map",), default=False)
def _cheap_map(call: ast.Call, site: Site) -> Iterator[Match]:
    """A map of a few elementwise operations right before the batch."""
    chain = datasets.before(call, site)
    if not chain.stages or chain.stages[-1].name != "map" or not chain.certain:
        return
    stage = chain.stages[-1]
    done = stage.function
    if done.known and len(done.calls) <= 4 and _works_on_batches(done, _ON_BATCHES[3:]):
        yield Match(
            stage.call,
            "A map of a few cheap operations runs once per element; its calls cost more than its work.",
            "Map after batch, if the operations are elementwise.",
            report_at=stage.call.args[0] if stage.call.args else None,
        )


def _works_on_batches(done: CallSummary, allowed: tuple[str, ...]) -> bool:
    if not done.known:
        return False
    for name, call, site in done.calls:
        known = site.module.function_of(call.func, site) is not None
        if not (known or name.startswith(allowed) or (not name and last_name(call.func) in _HARMLESS)):
            return False
    return True


CAUSE = Cause(
    group="input",
    cures=("vectorize-map",),
    explains=("gpu-idle", "input-bound"),
    in_run=in_run,
    patterns=(_parse_one_by_one, _cheap_map),
)
