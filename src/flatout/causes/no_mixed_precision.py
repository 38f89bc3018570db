"""The hardware has fast units for half precision, and the model computes in float32.

## What it is
Tensor cores (GPUs since 2017), TPUs and CPUs with AMX or AVX-512 BF16 multiply 16-bit matrices several
times faster than 32-bit ones. The Keras policy is `float32` unless the program says otherwise.

## Why it costs
Matrix products and convolutions use the slow path, and activations take twice the memory and bandwidth.
Recent GPUs already round float32 products to TF32 by default, which is part of the gain.

## How it looks
```python
model = build_transformer()                          # policy float32
model.compile(optimizer="adam", loss=loss)
```

## The cure
```python
keras.config.set_dtype_policy("mixed_bfloat16")      # before the layers are built
model = build_transformer()
model.compile(optimizer="adam", loss=loss)
```
Weights stay in float32. The last softmax and the loss are better in float32: give that layer
`dtype="float32"`.
- `bf16`: **precision**. The range of float32 with fewer digits; no loss scaling. Losses deviated by 0.04 to
  0.17 in trials.
- `fp16`: **precision**. More digits, a small range: it needs loss scaling, which Keras' `compile` adds by
  itself and custom loops do through `keras.optimizers.LossScaleOptimizer`.

## When it is not worth it
On hardware without such units, and for small or memory-light models, where the casts cost more than they
save: on one CPU with AMX, bf16 made graph training 1.1 to 1.35 times as fast, but an eager loop slower
(0.68), and fp16 took 98 s to start. Sizes that are not multiples of eight may miss the fast kernels. Always
compare the losses.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import constant, last_name

THIRTY_TWO_BITS = ("TF32", "fp32")
SAVED = 0.5
"""Of the time in products that are computed in 32 bits: half the bytes, and at least twice the rate."""


def in_run(case: Case) -> Iterator[Finding]:
    device = queries.busiest_gpu(case)
    if device is None or not device.detail.kernel_ms:
        return
    shares = device.detail.precision_shares or {}
    wide = sum(share for precision, share in shares.items() if precision in THIRTY_TWO_BITS)
    products = (device.detail.matrix_ms or 0.0) / device.detail.kernel_ms
    computing = queries.part_ms(case, "compute") if case.steps is not None else None
    if not wide or not device.precision:
        return
    yield from queries.finding(
        "no-mixed-precision",
        case,
        f"{products:.0%} of the GPU's computing is matrix products and convolutions, {wide:.0%} of them in 32 bits; "
        "its tensor cores take 16-bit types at twice the rate.",
        cost_ms=SAVED * products * wide * computing if computing is not None else None,
        where=case.steps.where if case.steps else None,
        evidence=[
            queries.number("products", products, "share", "of the kernels' time", "trace"),
            queries.number("in 32 bits", wide, "share", f"of the products, mostly {device.precision}", "trace"),
        ],
        fixes=[
            Fix('keras.mixed_precision.set_global_policy("mixed_bfloat16").', lever="bf16", equivalence="precision")
        ],
        confidence="low",
        estimate="an estimate: half of the time in products of 32 bits",
    )


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────


@pattern("policy-too-late", calls=("set_global_policy", "set_dtype_policy", "set_policy"))
def _policy_too_late(call: ast.Call, site: Site) -> Iterator[Match]:
    """The policy is set after the layers were made: they keep float32."""
    policy = constant(call.args[0]) if call.args else None
    if not site.dotted(call.func).startswith("keras.") or not isinstance(policy, str) or "mixed" not in policy:
        return
    for name, binds in site.scope.facts.binds.items():
        made = [bind for bind in binds if isinstance(bind.value, ast.Call) and bind.how == "assign"]
        early = [bind for bind in made if bind.site.line < site.line and _makes_model(bind.value, bind.site)]
        late = [bind for bind in binds if bind.site.line > site.line]
        trained = any(
            last_name(other.func) in ("fit", "compile")
            and isinstance(other.func, ast.Attribute)
            and isinstance(other.func.value, ast.Name)
            and other.func.value.id == name
            and other.lineno > call.lineno
            for other, _ in site.scope.facts.calls
        )
        if early and not late and trained and not site.loops and not early[-1].site.excludes(site):
            yield Match(
                call,
                f"The policy is set after {name} was made (line {early[-1].site.line}): its layers stay in float32.",
                "Set it before the first layer is made.",
                "precision",
            )
            return


def _makes_model(value: ast.expr | None, site: Site) -> bool:
    name = site.dotted(value.func) if isinstance(value, ast.Call) else ""
    return name.startswith(("keras.Sequential", "keras.models.", "keras.Model", "keras.applications."))


CAUSE = Cause(
    group="hardware",
    cures=("bf16", "fp16"),
    in_run=in_run,
    patterns=(_policy_too_late,),
)
