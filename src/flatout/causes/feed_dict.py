"""A session is fed from Python with `feed_dict`, so that every step waits for a copy of its input.

## What it is
TensorFlow 1 style: placeholders, and `session.run(train, feed_dict={...})` in a loop.

## Why it costs
Preparing the arrays, copying them into the runtime and computing the step happen one after another, in one
Python thread. Nothing is prepared ahead, and on an accelerator the copy to the device is part of each step.

## How it looks
```python
images = tf.compat.v1.placeholder(tf.float32, [None, 784])
for start in range(0, len(data), 128):
    session.run(train, feed_dict={images: data[start : start + 128] / 255.0})
```

## The cure
With the session kept, a data set with an iterator in the graph:
```python
dataset = tf.data.Dataset.from_tensor_slices(data).batch(128).map(lambda rows: rows / 255.0).repeat()
images = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
for _ in range(steps):
    session.run(train)
```
Better, as sessions belong to a frozen interface: port the loop to a `tf.function` over the data set, or to
Keras `fit`.
- An edit of the source: exact, as long as the data set gives the batches in the order in which they were
  fed.
- `feed-once`, where what is fed stays the same and only its dtype has to be converted: exact.
- `prepared-runs`, where the graph computes for a millisecond or less: exact. What a run fetches and feeds is looked up
  once.
- `caller-thread`, for graphs of a few small ops: exact. The thread that calls `run` runs them itself.
- `session.run` with several fetches at once also beats several calls: each call is a round trip of its own.

## When it is not worth it
For a few feeds of small values: a learning rate, a dropout rate, a flag. For a program that is about to be
retired.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.model.evidence.steps import Feed
from flatout.source.analysis import loops
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import constant, keyword

SCALARS = 4096
"""Bytes a step up to which what is fed is a learning rate or a row: starting the session costs more than feeding it."""

LOOKING_UP = 0.1
"""Share of the step in Python inside `run`, from which it is worth to keep what it looks up."""

MUCH = 2**16
"""Bytes a step from which converting them shows."""


def in_run(case: Case) -> Iterator[Finding]:
    for item in case.evidence_of(Feed):
        if float(item.value or 0.0) <= SCALARS:
            continue
        outside = queries.step_ms(case) - item.graph_ms
        feeding = max(
            outside,
            item.run_ms - item.graph_ms,
            queries.part_ms(case, "python"),
        )
        yield from queries.finding(
            "feed-dict",
            case,
            f"Each step is fed {item.bytes_per_step / 2**20:.2f} MiB from Python; "
            "while Python prepares it, nothing computes.",
            cost_ms=max(feeding, 0.0),
            where=item.where,
            evidence=[
                queries.number("outside", max(outside, 0.0), "ms", "of a step outside the graph", "hook"),
                queries.number("fed", item.bytes_per_step, "bytes", "per step", "hook"),
            ],
            fixes=_fixes(item.converted, queries.share(case, item.run_ms - item.graph_ms)),
            estimate="the step less the time inside the graph",
        )


def _fixes(converted: float, looking_up: float) -> list[Fix]:
    """`looking_up`: the share of the step that `run` spends before and after the graph."""
    fixes = []
    if looking_up >= LOOKING_UP:
        advice = f"Let the session look up fetches and feeds once: now {looking_up:.0%} of the step."
        fixes.append(Fix(advice, lever="prepared-runs", equivalence="exact"))
    if converted:
        advice = f"Convert what stays the same to its placeholder's dtype once: now {converted / 2**20:.2f} MiB a step."
        fix = Fix(advice, lever="feed-once", equivalence="exact")
        fixes.insert(0 if converted >= MUCH else len(fixes), fix)
    fixes.append(Fix("Read the data with a tf.data iterator inside the graph."))
    return fixes


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

_SMALL = re.compile(
    r"lr|rate|keep|prob|train|phase|mode|step|handle|dropout|temperature|beta|epsilon|size", re.IGNORECASE
)


@pattern("run-in-loop", calls=("run",), words=("feed_dict",), most="low")
def _run_in_loop(call: ast.Call, site: Site) -> Iterator[Match]:
    """`session.run(…, feed_dict={…})` in each turn of a loop."""
    fed = keyword(call, "feed_dict")
    if fed is None or not site.loops or re.search(r"bench|warm_?up", site.scope.name):
        return
    loop = site.loops[-1]
    if loops.is_short(loop) or loops.is_guarded(site, loop) or isinstance(loop, ast.ListComp):
        return
    if isinstance(fed, ast.Dict) and not any(
        _is_data(key, value) for key, value in zip(fed.keys, fed.values, strict=True)
    ):
        return
    yield Match(
        call,
        "Every turn feeds the session from Python and waits for the copy; nothing is prepared ahead.",
        "Read the data with tf.data inside the graph, or port the loop to tf.function.",
        report_at=fed,
        confidence="low",  # code for TensorFlow 1 is reported as a whole
    )


def _is_data(key: ast.expr | None, value: ast.expr) -> bool:
    if key is None:
        return True
    return constant(value) is object and not _SMALL.search(ast.unparse(key))


CAUSE = Cause(
    group="graph",
    cures=("feed-once", "prepared-runs", "caller-thread"),
    explains=("gpu-idle", "launch-bound", "step-overhead"),
    replaces=("step-overhead/python-between",),
    in_run=in_run,
    patterns=(_run_in_loop,),
)
