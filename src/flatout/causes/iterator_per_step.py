"""A new iterator over the data is made for every step, and only its first element is used.

## What it is
`next(iter(dataset))` inside a loop.

## Why it costs
An iterator sets up the whole pipeline: threads, buffers, open files. A shuffle buffer is filled before the first
element comes out, parallel stages start more elements than are ever taken, and everything is thrown away after one
element. Each turn also sees the beginning of the data again, so that most of it is never used.

## How it looks
```python
for step in range(1000):
    images, labels = next(iter(dataset))
    train_step(images, labels)
```

## The cure
```python
iterator = iter(dataset.repeat())
for step in range(1000):
    images, labels = next(iterator)
    train_step(images, labels)
```
- An edit of the source: **semantic**. The steps see all of the data instead of its beginning.

No lever does this: only the author knows which element a step should see.

## When it is not worth it
To look at one batch now and then, for instance once per epoch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.source.analysis import datasets, loops
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site


@pattern("next-of-iter", calls=("next",), words=("iter",), written=r"\bnext[\s\\]*\([\s\\(]*iter\b", on_dataset=True)
def _next_of_iter(call: ast.Call, site: Site) -> Iterator[Match]:
    """`next(iter(dataset))` in a loop of steps."""
    if not isinstance(call.func, ast.Name) or not call.args:
        return
    made = call.args[0]
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Name) or made.func.id != "iter" or not made.args:
        return
    loop = loops.eager_loop(site)
    if loop is None or loops.is_short(loop) or loops.names_epochs(loop) or loops.is_guarded(site, loop):
        return
    if loops.target_names(loop) & {node.id for node in ast.walk(made.args[0]) if isinstance(node, ast.Name)}:
        return  # another dataset in each turn
    if datasets.upstream(made.args[0], site).certain:
        yield Match(
            call,
            "Each turn of the loop starts the whole pipeline again for one element.",
            "Make the iterator once, before the loop, and call next on it.",
            "semantic",
        )


CAUSE = Cause(
    group="input",
    patterns=(_next_of_iter,),
)
