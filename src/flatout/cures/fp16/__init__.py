"""Layers compute in float16 on a GPU, with the loss scaled, and keep their weights in float32.

## What it does
Sets the policy `mixed_float16` before the program builds its layers. Keras' `compile` then wraps the optimizer so
that the loss is scaled; a model still returns float32.

## When it pays
On GPUs with tensor cores, for steps that compute more than they wait. Never on a CPU, where float16 is slower and
took minutes to start.

## What it changes
Precision: eleven bits of mantissa and a small range. A custom training loop has to scale its loss itself; without
that, small gradients become zero. bfloat16 needs no scaling: see `bf16`.

## In the source
```python
keras.config.set_dtype_policy("mixed_float16")        # before the first layer
```
Give the last layer `dtype="float32"`.
"""

from __future__ import annotations

from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case

POLICY = "mixed_float16"


def skip(case: Case) -> str | None:
    if not queries.gpus_in_use(case):
        return "the program uses no GPU, and a CPU is slower in float16"
    policy = queries.policy(case)
    if policy not in (None, "float32", "float64"):
        return f"the model already computes with the policy {policy}"
    if queries.step_kind(case) not in ("fit", "predict", "evaluate"):
        return "a loop of one's own would have to scale its loss; bf16 needs no scaling"
    return None


CURE = Cure(
    does="compute in float16",
    equivalence="precision",
    side="compute",
    conflicts=("bf16",),
    # The policy replaces the one that float32 removes.
    after=("float32",),
    skip=skip,
    by_default=False,
)
