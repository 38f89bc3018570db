"""The pipeline shuffles whole batches instead of samples.

## What it is
`shuffle` comes after `batch`, so that its buffer holds batches and changes their order only.

## Why it costs
The buffer counts batches: a buffer of 10,000 behind `batch(32)` holds 320,000 samples, and all of them are read and
prepared before the first step can start. For that price the samples are hardly mixed: those of one batch stay
together in every epoch, which usually makes the training converge more slowly.

## How it looks
```python
dataset = tf.data.Dataset.from_tensor_slices((images, labels)).batch(32).shuffle(10_000)
```

## The cure
```python
dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(10_000).batch(32)
```
- An edit of the source: **semantic**. Batches are made of other samples in each epoch.

No lever does this: only the author knows what a batch should be made of.

## When it is not worth it
When what is called a batch is a sample of its own, such as a window of a text that is batched again later, or when
the samples were mixed once before they were stored.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.source.analysis import datasets, loops, programs
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import argument
from flatout.source.repairs import Repair, SwapStages

_BATCHES = ("batch", "padded_batch")
_FEW = 1
"""Batches of one sample may as well be shuffled as they are."""
_SHORT = 8
"""A buffer of so few batches is full at once."""


@pattern("shuffle-after-batch", calls=("shuffle",), among=_BATCHES, on_dataset=True, often_in=programs.feeds_training)
def _shuffle_after_batch(call: ast.Call, site: Site) -> Iterator[Match]:
    """`.batch(32).shuffle(1000)`, not batched again later and not shuffled before."""
    chain = datasets.before(call, site)
    batch = chain.last(*_BATCHES)
    if batch is None or not chain.certain:
        return
    given = argument(batch.call, 0, "batch_size")
    size = loops.number(given, batch.site) if given is not None else None
    if size is not None and size <= _FEW:
        return
    if site.statement is not None and "next(iter(" in ast.unparse(site.statement):
        return  # one batch, to have a look
    since = [stage.name for stage in chain.since(batch)]
    before = chain.names()[: chain.stages.index(batch)]
    if {"unbatch", "flat_map", "interleave"} & set(since) or {"shuffle", "window"} & set(before):
        return
    if _batched_again(call, site) or site.unsure_of(batch.site):
        return
    adjacent = isinstance(call.func, ast.Attribute) and call.func.value is batch.call
    yield Match(
        call,
        "shuffle comes after batch: it moves whole batches, and its buffer holds that many batches.",
        "Shuffle first, then batch.",
        "semantic",
        repair=Repair(SwapStages(), assumes="samples may be mixed across batches")
        if adjacent and not _handed_out(site)
        else None,
        report_at=call.func,
        confidence="low" if _for_tests(site) or _is_short(call, site) else "high",
    )


def _is_short(call: ast.Call, site: Site) -> bool:
    given = argument(call, 0, "buffer_size")
    size = loops.number(given, site) if given is not None else None
    return size is not None and size <= _SHORT


def _for_tests(site: Site) -> bool:
    """Whether what gets its value here is named for validation or tests: their order does not matter."""
    targets = site.statement.targets if isinstance(site.statement, ast.Assign) else []
    written = " ".join(ast.unparse(target) for target in targets)
    return re.search(r"(^|[\W_])(val|valid|validation|test|eval|dev)([\W_]|\d|$)", written, re.IGNORECASE) is not None


def _handed_out(site: Site) -> bool:
    """Whether a function returns or keeps it: who gets it may batch it again."""
    return site.scope.is_function


def _batched_again(call: ast.Call, site: Site) -> bool:
    return any(
        any(stage.call is call for stage in datasets.before(again, where).stages)
        for name in (*_BATCHES, "unbatch", "flat_map")
        for again, where in site.module.calls_by_name.get(name, ())
    )


CAUSE = Cause(
    group="input",
    patterns=(_shuffle_after_batch,),
)
