"""Layers compute in bfloat16 and keep their weights in float32.

## What it does
Sets the policy `mixed_bfloat16` before the program builds its layers, and again after
`keras.backend.clear_session()`. A model still returns float32, so that losses and metrics written for it keep
working.

## When it pays
Where the hardware computes faster in bfloat16: GPUs since Ampere, CPUs with AMX or AVX-512-BF16. A `fit` on such a
CPU gained 1.1–1.35; an eager loop lost (0.68), since each cast is one more operation to dispatch.

## What it changes
Precision: eight bits of mantissa instead of 24 in the layers. Losses differ in the second or third digit (0.04– 0.17
seen); check that the model still reaches its quality.

## In the source
```python
keras.config.set_dtype_policy("mixed_bfloat16")        # before the first layer
```
Give the last layer `dtype="float32"`.
"""

from __future__ import annotations

from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case

POLICY = "mixed_bfloat16"


def skip(case: Case) -> str | None:
    policy = queries.policy(case)
    if policy not in (None, "float32", "float64"):
        return f"the model already computes with the policy {policy}"
    if not queries.gpus_in_use(case) and queries.step_kind(case) in ("apply", "tape", "model"):
        return "the steps run eagerly, where each cast is one more operation to dispatch"
    if queries.step_kind(case) == "session":
        return "the steps are those of a TensorFlow 1 session; the policy is one of Keras layers"
    return None


CURE = Cure(
    does="compute in bfloat16",
    equivalence="precision",
    side="compute",
    conflicts=("fp16",),
    # The policy replaces the one that float32 removes.
    after=("float32",),
    skip=skip,
)
