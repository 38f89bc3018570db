"""A tensor is made longer by one piece in each turn, and copied as a whole each time.

## What it is
`result = tf.concat([result, piece], axis=0)` in a loop.

## Why it costs
Every turn copies all that was collected so far: n pieces cost n²/2 copies. The shape is another one in each turn, so
that a `tf.function` that is given the result is traced again each time.

## How it looks
```python
scores = tf.zeros((0, 10))
for batch in dataset:
    scores = tf.concat([scores, model(batch)], axis=0)
```

## The cure
```python
scores = []
for batch in dataset:
    scores.append(model(batch))
scores = tf.concat(scores, axis=0)
```
Inside a `tf.function` a `tf.TensorArray` takes the place of the list.
- An edit of the source: exact.

No lever does this: it would have to change what the name holds inside the loop.

## When it is not worth it
For a handful of turns.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.source.analysis import loops
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Loop, Site
from flatout.source.analysis.syntax import argument, constant, last_name


@pattern("concat-in-loop", nodes=(ast.Assign,), words=("concat",), in_loop=("concat",), of_tensorflow=True, most="low")
def _concat_in_loop(node: ast.Assign, site: Site) -> Iterator[Match]:
    """`x = tf.concat([x, piece], 0)` in a loop that does not use x for anything else."""
    call = node.value
    if (
        not isinstance(call, ast.Call)
        or not site.loops
        or site.dotted(call.func) != "tensorflow.concat"
        or not call.args
    ):
        return
    axis = constant(argument(call, 1, "axis"))
    if axis not in (0, 1, object):
        return  # channels of a few branches
    target, parts = node.targets[0], call.args[0]
    if not isinstance(target, ast.Name) or not isinstance(parts, (ast.List, ast.Tuple)) or len(parts.elts) != 2:
        return
    if not any(isinstance(part, ast.Name) and part.id == target.id for part in parts.elts):
        return
    loop = site.loops[-1]
    if loops.is_short(loop) or loops.is_guarded(site, loop) or not isinstance(loop, (ast.For, ast.While)):
        return
    if _reset(target.id, loop):
        return
    aside = {id(n) for c in ast.walk(loop) if _is_option(c) for n in ast.walk(c)}
    uses = [
        n
        for n in ast.walk(loop)
        if isinstance(n, ast.Name) and n.id == target.id and isinstance(n.ctx, ast.Load) and id(n) not in aside
    ]
    growing = [other for other, where in site.scope.facts.others if loop in where.loops and _grows(other)]
    if growing[0] is not node:
        return  # reported once per loop
    if len(uses) > 1:
        return  # the growing tensor is needed in each turn, as in decoding
    yield Match(
        node,
        f"{target.id} is copied as a whole in each turn to add one piece.",
        "Collect the pieces in a list (a tf.TensorArray in a tf.function), and concatenate once after the loop.",
        report_at=call.func,
        # None of the eight that readers judged mattered: a few boxes, one number for each batch.
        confidence="low",
    )


def _is_option(node: ast.AST) -> bool:
    """`tf.autograph.experimental.set_loop_options(shape_invariants=[(rows, …)])`"""
    return isinstance(node, ast.Call) and last_name(node.func) == "set_loop_options"


def _grows(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and last_name(node.value.func) == "concat"


def _reset(name: str, loop: Loop) -> bool:
    """Whether the loop starts it anew in each turn: then it does not grow with the turns."""
    stores = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)]
    return len(stores) > 1


CAUSE = Cause(
    group="graph",
    patterns=(_concat_in_loop,),
)
