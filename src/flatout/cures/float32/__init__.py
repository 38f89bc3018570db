"""A Keras program that selected double precision computes in single precision.

## What it does
Makes `set_floatx("float64")`, a float64 policy and a layer's `dtype="float64"` mean float32, for Keras 3 and
tf_keras.

## When it pays
Nearly always where it applies: double precision moves twice the bytes, uses half of each vector register, and runs at
1/2 to 1/64 of the speed on a GPU.

## What it changes
Precision: 24 bits of mantissa instead of 53. Training rarely needs more; a simulation, a solver or a very long sum
may. What the program itself computes in float64 outside of Keras stays as it is.

## In the source
```python
keras.backend.set_floatx("float32")        # or leave the line out
```
"""

from __future__ import annotations

from flatout.cures._spec import Cure
from flatout.model.case import Case
from flatout.model.evidence.program import Switch


def skip(case: Case) -> str | None:
    asked = [item for item in case.evidence_of(Switch) if "float64" in " ".join(item.given)]
    found = any(finding.cause == "float64" for finding in case.findings)
    return None if asked or found else "nothing selects double precision"


CURE = Cure(does="compute in single precision (float32)", equivalence="precision", side="compute", skip=skip)
