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
    by_function: dict[tuple[str | None, str | None], list[Evidence]] = defaultdict(list)
    for item in pulls:
        if item.where is not None:
            by_function[(item.where.file, item.where.function)].append(item)
    for items in by_function.values():
        items.sort(key=lambda item: -float(item.value or 0.0))
        pulling, working = _lines(case, items)
        waiting = max(sum(float(item.value or 0.0) for item in items), reading.lines_ms(case, pulling))
        work = reading.lines_ms(case, working)
        calls = sum(float(item.data["per_step"]) for item in items)
        yield from reading.finding(
            "host-sync",
            case,
            f"Values are pulled from TensorFlow into Python {calls:.0f} times a step"
            + (f", on {len(items)} lines" if len(items) > 1 else "")
            + "; each pull waits for the device and copies."
            + (" Python then works on them while nothing computes." if work > waiting else ""),
            cost_ms=waiting + work,
            where=items[0].where,
            evidence=[
                *(
                    reading.number("pull", float(item.value or 0.0), "ms", "per step on this line", "hook", item.where)
                    for item in items[:3]
                ),
                *([reading.number("work", work, "ms", "on the values pulled", "sampling")] if work else []),
            ],
            fixes=[Fix("Keep metrics in tensors and read them every hundred steps, or compute them inside the step.")],
            estimate="measured by hooks on .numpy() and its kin, and by sampling the lines that pull",
        )


def _lines(case: Case, items: list[Evidence]) -> tuple[set[reading.Line], set[reading.Line]]:
    """Lines that pull, with the heads of the loops around them up to that of the steps; lines that work on the values.

    Going through a tensor in Python costs more than the pull of each value: a slice is dispatched for every turn.
    """
    stepping = reading.stepping_lines(case)
    pulling: set[reading.Line] = set()
    for item in items:
        if item.where is None or item.where.file is None or item.where.line is None:
            continue
        pulling.add((item.where.file, item.where.line))
        for loop in places.enclosing_loops(item.where.file, item.where.line):
            if any(file == item.where.file and loop.line <= (line or 0) <= loop.end for file, line in stepping):
                break
            pulling.add((item.where.file, loop.line))
    working: set[reading.Line] = {
        (file, line)
        for file in {file for file, _ in pulling if file}
        for line in places.numpy_work_on(file, frozenset(line for other, line in pulling if other == file and line))
    }
    return pulling - stepping, working - pulling - stepping
