"""The first stages of the pipeline do the same deterministic work again in every epoch.

## What it is
Reading, decoding, resizing, tokenising: the stages before the first shuffle or random augmentation give the
same elements in every epoch, and nothing keeps their result.

## Why it costs
The work is paid for once per epoch instead of once. In a JPEG pipeline on one machine a cache after the
deterministic part made warm epochs 3.45 times as fast and took the processor time per image from 1236 to
342 µs.

## How it looks
```python
dataset = (
    tf.data.Dataset.from_tensor_slices(paths)
    .map(read_and_decode)     # the same images, decoded again for each of 50 epochs
    .shuffle(2000)
    .map(augment)
    .batch(64)
)
```

## The cure
```python
dataset = (
    tf.data.Dataset.from_tensor_slices(paths)
    .map(read_and_decode)
    .cache()                  # or .cache("/fast/disk/name") when memory is too small
    .shuffle(2000)
    .map(augment)
    .batch(64)
)
```
The position matters: after the last deterministic stage, **before** shuffle and augmentation. A cache after a
random stage freezes the first epoch's draws for the rest of the training.
- `cache`: exact, where every stage before it is deterministic and free of outside state.

## When it is not worth it
With one epoch there is nothing to gain, and the first epoch pays for filling the cache. Decoded images are
many times larger than their files: a cache that pushes the machine into swapping is slower than no cache. A
cache is complete only when the first pass reaches the end, so `take` and `steps_per_epoch` need care. A
file cache must be deleted by hand after the data or the function has changed: TensorFlow does not notice.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.source.analysis import datasets
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import argument, constant, keyword


def in_run(case: Case) -> Iterator[Finding]:
    hot = queries.hot_stage(case)
    if hot is None:
        return
    in_one_epoch = 2 if queries.step_kind(case) == "fit" else 1  # Keras opens one more to look at the first element
    again = (hot.pipeline.options.iterators or 0) > in_one_epoch
    again = again or any(stage.name == "Repeat" for stage in hot.pipeline.stages)
    cached = any(stage.name == "Cache" for stage in hot.pipeline.stages)
    stateless = all(stage.stateful is None for stage in hot.prefix)
    if hot.stage.name in queries.BUFFERS or any(stage.name == "Shuffle" for stage in hot.prefix):
        return  # nothing is computed there, or what comes out is another order in each epoch
    if cached or not again or not stateless or hot.per_sample_ms < queries.CHEAP_MS or hot.stage.detail.by_keras:
        return
    size = _bytes(hot)
    limit = case.memory.limit_bytes if case.memory is not None else 0
    if size and limit and size > 0.5 * limit:
        return
    note = f", about {size / 2**20:.0f} MiB" if size else ""
    yield from queries.finding(
        "uncached-prefix",
        case,
        f"Every epoch repeats the same work in {hot.stage.name.lower()} {hot.stage.function or ''}".rstrip()
        + f", and the step waits for it; its result could be kept{note}.",
        cost_ms=hot.wait_ms,
        where=hot.stage.where,
        evidence=queries.wait_evidence(case, hot),
        fixes=[
            Fix(
                "Put .cache() right after this stage, before shuffling and random augmentation.",
                lever="cache",
            )
        ],
        estimate="the wait that the trace shows; the first epoch still pays it",
    )


def _bytes(hot: queries.HotStage) -> int:
    """What the cache would hold: elements of an epoch times their size."""
    count = hot.stage.detail.cardinality or 0
    size: float | None = hot.stage.detail.element_bytes
    if size is None and hot.stage.elements and hot.stage.bytes:
        size = hot.stage.bytes / hot.stage.elements / (hot.batch if hot.before_batch else 1)
    return int(count * size) if count > 0 and size else 0


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────


@pattern("decode-every-epoch", calls=("fit",), words=("fit",), default=False)
def _decode_every_epoch(call: ast.Call, site: Site) -> Iterator[Match]:
    """`model.fit(dataset, epochs=50)` over a pipeline that decodes and has no cache."""
    epochs = keyword(call, "epochs")
    if epochs is None or constant(epochs) in (0, 1):
        return
    chain = datasets.upstream(argument(call, 0, "x"), site)
    if not chain.certain or "cache" in chain.names() or "snapshot" in chain.names():
        return
    decoder = next((s for s in chain.stages if s.name == "map" and datasets.decodes(s.function)), None)
    if decoder is not None and datasets.draws_at_random(decoder.function) is None:
        yield Match(
            decoder.call,
            "Every epoch decodes the same elements again.",
            "Put .cache() right after this map, if the decoded elements fit in memory or on a fast disk.",
            report_at=decoder.call.args[0] if decoder.call.args else None,
        )


CAUSE = Cause(
    group="input",
    cures=("cache",),
    explains=("gpu-idle", "input-bound", "late-batch"),
    replaces=("oversized-buffer/epoch-start",),
    in_run=in_run,
    patterns=(_decode_every_epoch,),
)
