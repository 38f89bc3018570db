"""XLA compiles the training steps.

## What it does
Compiles Keras models with `jit_compile=True`, also those whose `compile` has it off, and runs the outermost
tf.functions that train through a copy with `jit_compile=True`. `xla=all` does so for every
outermost tf.function of the program, for programs that only infer.

## When it pays
When a step is made of many small operations, which XLA fuses: it saves launches and memory traffic. On a GPU often;
on a CPU it may be several times slower (a small `fit` ran at 0.13 of its speed), and each new shape is compiled
again. Only a measurement shows whether it pays.

## What it changes
Reassociated: the same mathematics in another order (losses within 7e-5 seen). Random numbers of TensorFlow's own ops
differ. A function that XLA cannot compile runs as before.

## In the source
```python
model.compile(optimizer="adam", loss="mse", jit_compile=True)

@tf.function(jit_compile=True)
def train_step(images, labels): ...
```
"""

from __future__ import annotations

from collections.abc import Sequence

from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case

ALL = "all"


def skip(case: Case) -> str | None:
    kind = queries.step_kind(case)
    if kind in ("apply", "tape", "model"):
        return "the steps run eagerly: there is no graph to compile; `function` comes first"
    if kind == "session":
        return "the steps are those of a TensorFlow 1 session"
    step = queries.step_stack(case)
    if step is not None and kind == "fit" and (step.run_eagerly or step.jit_compile is True):
        return "the model runs eagerly" if step.run_eagerly else "the model is compiled by XLA"
    if kind in ("function", "train-function") and all(f.jit_compile for f in case.functions):
        return "the functions are compiled by XLA"
    if not queries.gpus_in_use(case) and any("DepthwiseConv" in op.type for op in case.ops):
        return "XLA runs depthwise convolutions many times slower on a CPU"
    return None


def values(case: Case) -> Sequence[str]:
    return (ALL,) if queries.step_kind(case) == "function" else ("",)


CURE = Cure(
    does="compile the steps with XLA",
    equivalence="reassociated",
    side="compute",
    compiles=True,
    conflicts=("no-xla",),
    # It compiles the function that these make of a step.
    after=("extract-step", "function", "no-run-eagerly"),
    values=values,
    skip=skip,
)
