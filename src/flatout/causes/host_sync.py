"""The program reads a value back from the device in every step and waits for it.

## What it is
`.numpy()`, `float(loss)`, `print(loss)`, `if loss < best:` or a Python-side metric inside the loop. Each
needs the number now, so Python waits until everything the number depends on has been computed.

## Why it costs
On an accelerator, operations are queued and Python runs ahead, preparing the next step while this one
computes. Reading a value back drains the queue: the device idles while Python catches up, in every step. On
the CPU the loss is small, because most operations have finished when their call returns.

## How it looks
```python
history = []
for batch in dataset:
    loss = step(batch)
    history.append(loss.numpy())           # waits for the device each time
    if history[-1] < best:
        best = history[-1]
```

## The cure
Keep tensors as tensors, and read them once in a while:
```python
total = tf.Variable(0.0)
for number, batch in enumerate(dataset):
    total.assign_add(step(batch))
    if number % 100 == 99:
        print(float(total) / 100)
        total.assign(0.0)
```
`keras.metrics.Mean` keeps its state on the device; `history.append(loss)` without `.numpy()` keeps the
tensor. In Keras `fit`, a callback that overrides `on_train_batch_end` makes `fit` wait for the logs of each
batch.
- An edit of the source: exact. No lever does this: where the value goes is the program's own business.

## When it is not worth it
When the step is long and the device queue is never more than one step deep anyway, or when a decision
depends on the value at once (line search, early abort on NaN). Checking every tenth step is often enough.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from flatout.case import Case, Evidence, Finding, Fix
from flatout.causes import reading
from flatout.source import places

GROUP = "graph"
LEVERS = ()

EVERY_STEP = 0.5


def in_run(case: Case) -> Iterator[Finding]:
    pulls = [
        item for item in case.evidence_of("host-sync") if float(item.data["per_step"]) >= EVERY_STEP and item.where
    ]
    if not pulls:
        return
    by_function: dict[tuple[str | None, str | None], list[Evidence]] = defaultdict(list)
    for item in pulls:
        if item.where is not None:
            by_function[(item.where.file, item.where.function)].append(item)
    for items in by_function.values():
        items.sort(key=lambda item: -float(item.value or 0.0))
        cost = max(sum(float(item.value or 0.0) for item in items), _sampled_ms(case, items))
        calls = sum(float(item.data["per_step"]) for item in items)
        yield from reading.finding(
            "host-sync",
            case,
            f"Values are pulled from TensorFlow into Python {calls:.0f} times a step"
            + (f", on {len(items)} lines" if len(items) > 1 else "")
            + "; each pull waits for the device and copies.",
            cost_ms=cost,
            where=items[0].where,
            evidence=[
                reading.number("pull", float(item.value or 0.0), "ms", "per step on this line", "hook", item.where)
                for item in items[:3]
            ],
            fixes=[Fix("Keep metrics in tensors and read them every hundred steps, or compute them inside the step.")],
            estimate="measured by hooks on .numpy() and its kin, and by sampling the lines that pull",
        )


def _sampled_ms(case: Case, items: list[Evidence]) -> float:
    """Time seen on the lines that pull and on the heads of the loops around them, up to the loop of the steps.

    Going through a tensor in Python costs more than the pull of each value: a slice is dispatched for every turn.
    """
    stepping = {(file, line) for file, line, *_ in reading.step_fact(case, "stack") or []}  # type: ignore[attr-defined]
    lines: set[tuple[str | None, int | None]] = set()
    for item in items:
        if item.where is None or item.where.file is None or item.where.line is None:
            continue
        lines.add((item.where.file, item.where.line))
        for loop in places.enclosing_loops(item.where.file, item.where.line):
            if any(file == item.where.file and loop.line <= line <= loop.end for file, line in stepping):
                break
            lines.add((item.where.file, loop.line))
    share = sum(
        float(sample.value or 0.0)
        for sample in case.evidence_of("line-time")
        if sample.where is not None and (sample.where.file, sample.where.line) in lines - stepping
    )
    return share * case.steps.ms.mean if case.steps is not None else 0.0
