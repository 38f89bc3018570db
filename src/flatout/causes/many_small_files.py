"""Every element is a file of its own, so that opening files costs more than reading them.

## What it is
The data set is a directory of many small files: one image, one record or one array in each.

## Why it costs
Each element pays for a lookup, an open, a short read and a close. On a local disk with a warm page cache
that is little; on a network file system or object store each of these is a round trip of milliseconds, and
the read is too short for read-ahead to help. Shuffled access makes every read a random one.

## How it looks
```python
paths = tf.data.Dataset.list_files("photos/*/*.jpg")     # 400,000 files of 12 KB
dataset = paths.map(lambda path: decode(tf.io.read_file(path))).batch(64)
```

## The cure
Pack the elements into record shards once, and read the shards in parallel (`flatout data` converts):
```python
shards = tf.data.Dataset.list_files("photos-train.tfrecord-*")
dataset = (
    shards.interleave(tf.data.TFRecordDataset, cycle_length=8, num_parallel_calls=tf.data.AUTOTUNE)
    .shuffle(5_000)
    .batch(64)
    .map(lambda records: tf.io.parse_example(records, features))
)
```
At least ten times as many shards as hosts that read them, each at least 10 MB and better 100 to 200 MB.
- The values are the same; the **order** is not, because a shard is shuffled less freely than single files
  are: semantic.
- `cache`: exact for a deterministic prefix; removes the cost from all epochs but the first.
- `threadpool`: exact; keeps more slow reads under way. See `blocking-map`.

## When it is not worth it
When the files lie on a local disk, fit into the page cache, or when decoding dominates anyway. Shards are a
copy that must be kept up to date; for data that change daily the copy may cost more than it saves.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.model.evidence.pipelines import PipelineOp
from flatout.source.analysis import datasets
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site

READS = ("ReadFile",)


def in_run(case: Case) -> Iterator[Finding]:
    hot = queries.hot_stage(case)
    if hot is None:
        return
    reading_ms = sum(item.ms for item in case.evidence_of(PipelineOp) if item.type in READS)
    all_ms = sum(item.ms for item in case.evidence_of(PipelineOp))
    readers = [s for s in hot.pipeline.stages if any(op in READS for op in s.detail.ops or {})]
    files = max(
        (s.detail.cardinality or 0 for s in hot.pipeline.stages if s.detail.strings),
        default=0,
    )
    few_bytes = False
    records = [s for s in hot.pipeline.stages if (s.detail.files or 0) >= 200]
    if readers and all_ms and reading_ms >= 0.4 * all_ms:
        stage = readers[0]
    elif records and hot.stage in records:
        stage, files, few_bytes = records[0], records[0].detail.files or 0, True
    else:
        return
    yield from queries.finding(
        "many-small-files",
        case,
        f"The step waits while {files or 'many'} small files are opened and read one by one.",
        cost_ms=hot.wait_ms,
        where=stage.where,
        evidence=[
            *queries.wait_evidence(case, hot),
            queries.number("reading", reading_ms, "ms", "spent in reads per step", "trace"),
        ],
        fixes=[Fix("Store the samples in a few large TFRecord files and read those.")],
        confidence="medium" if few_bytes else "high",
        estimate="the wait that the trace shows",
    )


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────


@pattern(
    "file-per-element", calls=("map",), words=("read_file", "decode_jpeg", "decode_image", "decode_png"), default=False
)
def _file_per_element(call: ast.Call, site: Site) -> Iterator[Match]:
    """A map that opens a file for every element. Source does not show how large the files are."""
    if not isinstance(call.func, ast.Attribute) or site.dotted(call.func):
        return
    done = datasets.Stage("map", call, site).function
    if (
        done.first("tensorflow.io.read_file", "tensorflow.read_file") is not None
        and datasets.before(call, site).certain
    ):
        yield Match(
            call,
            "Every element opens a file of its own.",
            "Where the files are small or remote, pack them into large TFRecord files once.",
            "semantic",
            report_at=call.args[0] if call.args else None,
        )


CAUSE = Cause(
    group="input",
    cures=("cache", "threadpool"),
    explains=("input-bound",),
    replaces=("uncached-prefix",),
    in_run=in_run,
    patterns=(_file_per_element,),
)
