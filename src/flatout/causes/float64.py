"""Part of the step computes in float64, although the model's own numbers are float32.

## What it is
NumPy's default is float64. An array that enters TensorFlow as it is (`tf.constant(array)`,
`from_tensor_slices(array)`) stays float64, and so does everything computed from it until something casts
it.

## Why it costs
Twice the memory and traffic, half the numbers per vector instruction. GPUs made for games or inference have
few float64 units, often one for every 32 or 64 float32 units, and no tensor core path for most layers.
Keras layers cast their inputs to the layer's own type, so that the surplus is often spent in the pipeline,
the loss or custom code.

## How it looks
```python
table = np.random.rand(100_000, 256)                         # float64
dataset = tf.data.Dataset.from_tensor_slices(table).batch(512)

@tf.function
def step(rows):
    return tf.reduce_sum(tf.matmul(rows, rows, transpose_b=True))   # all of it in float64
```

## The cure
Convert once, where the data enter:
```python
table = np.random.rand(100_000, 256).astype(np.float32)
dataset = tf.data.Dataset.from_tensor_slices(table).batch(512)
```
- `float32`: **precision**. Values lose about nine decimal digits; the losses must still agree within the tolerance of
  the task. Only you know which numbers need float64, so `tune` tries it and never combines it unasked.

## When it is not worth it
When the digits are needed: solving ill-conditioned systems, physics, long sums, finite differences, time
stamps. Integer and boolean data are another matter; small float64 scalars (a learning rate, a metric) cost
nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.model.evidence.graphs import Float64Origin
from flatout.model.evidence.program import Switch
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import argument, constant, keyword
from flatout.source.repairs import DeleteStatement, Repair


def in_run(case: Case) -> Iterator[Finding]:
    double = sum(op.self_ms for op in case.ops if op.dtype in ("float64", "complex128") and op.type != "Cast")
    whole = sum(op.self_ms for op in case.ops) or 1.0
    if double < 0.1 * whole:
        return
    switch = [
        item
        for item in case.evidence_of(Switch)
        if item.name.startswith("keras.") and any("float64" in given for given in item.given)
    ]
    origin = case.evidence_of(Float64Origin)
    where = switch[0].where if switch else (origin[0].where if origin else None)
    compute = queries.part_ms(case, "compute") * double / whole
    yield from queries.finding(
        "float64",
        case,
        f"{double / whole:.0%} of the computing is done in float64.",
        cost_ms=0.5 * compute,
        where=where,
        evidence=[queries.number("float64", compute, "ms", "of a step computes in float64", "trace")],
        fixes=[Fix("Compute in float32: cast the data where it enters.", equivalence="precision")],
        confidence="medium",
        estimate="an estimate: float32 takes half the time of float64 at best",
    )


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────


@pattern("policy", calls=("set_floatx", "set_dtype_policy", "set_global_policy"), words=("float64",))
def _policy(call: ast.Call, site: Site) -> Iterator[Match]:
    """`keras.backend.set_floatx("float64")`"""
    if not site.dotted(call.func).startswith("keras.") or _is_meant(call, site):
        return
    if constant(call.args[0] if call.args else None) == "float64":
        yield Match(
            call,
            "All layers compute in float64: twice the memory, half the speed on a CPU, far less on most GPUs.",
            "Leave it at float32, unless the digits are needed.",
            "precision",
            repair=Repair(DeleteStatement(), assumes="float32 has digits enough, and no array is float64 by itself")
            if isinstance(site.statement, ast.Expr)
            else None,
            report_at=site.statement,
            # The observations of these are float64, and their networks small.
            confidence="low" if site.module.names.imports_any("gym", "gymnasium") or _is_chosen(site) else "medium",
        )


def _is_chosen(site: Site) -> bool:
    """Whether the user chooses the type: under a condition, or where the file sets another one as well."""
    if any(isinstance(statement, ast.If) for statement, _ in site.arms):
        return True
    return any(
        constant(other.args[0]) in ("float32", "float16", "mixed_float16")
        for name in ("set_floatx", "set_dtype_policy", "set_global_policy")
        for other, _ in site.module.calls_by_name.get(name, ())
        if other.args
    )


def _is_meant(call: ast.Call, site: Site) -> bool:
    """Whether a comment at the line, or right above it, says why."""
    lines = [site.module.source_line(call.lineno)]
    above = call.lineno - 1
    while above and site.module.source_line(above).strip().startswith("#") and len(lines) < 6:
        lines.append(site.module.source_line(above))
        above -= 1
    return any("#" in line and _REASON.search(line.partition("#")[2]) for line in lines)


_REASON = re.compile(
    r"double|precis|digit|stab|accura|numer|nan\b|underflow|overflow|need|must|require|because", re.IGNORECASE
)


@pattern(
    "explicit", calls=("Variable", "constant", "cast", "zeros", "ones", "Dense"), words=("float64",), default=False
)
def _explicit(call: ast.Call, site: Site) -> Iterator[Match]:
    """`tf.constant(x, dtype=tf.float64)`"""
    name = site.dotted(call.func)
    if not name.startswith(("tensorflow.", "keras.")):
        return
    given = keyword(call, "dtype") or (argument(call, 1, "dtype") if name == "tensorflow.cast" else None)
    if given is not None and (site.dotted(given) == "tensorflow.float64" or constant(given) == "float64"):
        yield Match(
            call,
            "What is computed from this value is computed in float64.",
            "Use float32, unless the digits are needed.",
            "precision",
            report_at=given,
        )


CAUSE = Cause(
    group="numerics",
    cures=("float32",),
    in_run=in_run,
    patterns=(_policy, _explicit),
)
