"""Values are cast back and forth between types in every step.

## What it is
Many `Cast` operations in the step: images kept as `uint8` and cast several times, float64 inputs cast to
float32 by each layer, custom layers with a type of their own in a mixed precision model.

## Why it costs
A cast reads and writes the whole tensor and computes nothing. It depends on memory bandwidth alone, and it
also keeps operations apart that could otherwise be fused.

## How it looks
```python
class Scale(keras.layers.Layer):
    def call(self, values):
        values = tf.cast(values, tf.float32)       # breaks the half precision of the model
        return tf.cast(values * self.factor, tf.float16)
```

## The cure
Choose one type per part of the model, cast once at its border, and compute in `self.compute_dtype` in
custom layers:
```python
class Scale(keras.layers.Layer):
    def call(self, values):
        return values * tf.cast(self.factor, self.compute_dtype)
```
Cast images after the last stage that can work on `uint8`: it is a quarter of the traffic of float32.
- An edit of the source: exact where a cast is only moved, **precision** where a part then computes in
  another type.
- `xla`: reassociated. It fuses casts into their neighbours on devices where it pays; measure it.

## When it is not worth it
Mixed precision itself needs some casts: weights are kept in float32, and losses are computed in it. Those
are paid back by faster matrix products. A cast of a small tensor costs its dispatch only.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix, Where
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import argument


def in_run(case: Case) -> Iterator[Finding]:
    casts = [op for op in case.ops if op.type in ("Cast", "_MklCast") and op.where is not None]
    by_line: dict[Where, float] = defaultdict(float)
    for op in casts:
        if op.where is not None:
            by_line[op.where] += op.self_ms
    if not by_line or sum(op.count for op in casts) < 2:
        return
    whole = sum(op.self_ms for op in case.ops) or 1.0
    total = sum(by_line.values())
    # Ops overlap on several cores: take the share of computing time, not the plain sum.
    cost = queries.part_ms(case, "compute") * total / whole
    # Gradients of a cast carry the line of the tape: look at the casts that the user wrote, if any ran long enough.
    written = {op.where for op in casts if "gradient" not in op.name} or set(by_line)
    where = max((line for line in by_line if line in written), key=lambda line: by_line[line])
    yield from queries.finding(
        "cast-churn",
        case,
        f"{sum(op.count for op in casts):.0f} casts a step convert between types, "
        f"on {queries.counted(len(by_line), 'line')}.",
        cost_ms=cost,
        where=where,
        evidence=[queries.number("casts", cost, "ms", "of a step goes into Cast ops", "trace")],
        fixes=[
            Fix(
                "Choose one type for the whole step and cast once, where the data enters.",
                equivalence="precision",
            )
        ],
        estimate="time of the Cast ops in the trace",
    )


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────

_FLOATS = ("tensorflow.float16", "tensorflow.bfloat16", "tensorflow.float32", "tensorflow.float64")


@pattern("cast-of-cast", calls=("cast",), words=("cast",), default=False)
def _cast_of_cast(call: ast.Call, site: Site) -> Iterator[Match]:
    """`tf.cast(tf.cast(x, tf.float64), tf.float32)`"""
    if site.dotted(call.func) != "tensorflow.cast" or not call.args or not isinstance(call.args[0], ast.Call):
        return
    inner = call.args[0]
    types = [argument(item, 1, "dtype") for item in (inner, call)]
    if site.dotted(inner.func) == "tensorflow.cast" and all(
        item is not None and site.dotted(item) in _FLOATS for item in types
    ):
        yield Match(call, "A value is cast twice in a row.", "Cast it once.", "precision", report_at=call.func)


CAUSE = Cause(
    group="numerics",
    cures=("xla",),
    in_run=in_run,
    patterns=(_cast_of_cast,),
)
