"""Functions and models that XLA would compile run as plain graphs.

## What it does
Ignores `jit_compile=True`: for every tf.function, and in `compile` of Keras 3 and tf_keras (where `"auto"` can mean
XLA too, as it does on a GPU).

## When it pays
When shapes vary: XLA compiles for fixed shapes, a second or more for each of them, where one graph serves them all.
And where XLA's kernels are slower than TensorFlow's own, as for many models on a CPU.

## What it changes
Reassociated: the same mathematics in another order. Random numbers of TensorFlow's own ops differ.

## In the source
```python
@tf.function                       # without jit_compile=True
def train_step(images, labels): ...
```
"""

from __future__ import annotations

from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case


def skip(case: Case) -> str | None:
    step = queries.step_stack(case)
    of_model = step is not None and step.step in ("fit", "predict", "evaluate") and bool(step.jit_compile)
    if of_model or any(function.jit_compile for function in case.functions):
        return None
    return "XLA compiles no part of the steps"


CURE = Cure(does="leave XLA out", equivalence="reassociated", side="compute", conflicts=("xla",), skip=skip)
