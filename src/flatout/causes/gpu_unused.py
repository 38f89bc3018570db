"""The machine has a GPU, but the program runs on the CPU alone.

## What it is
A GPU is there, yet TensorFlow lists none, or lists it and no operation of the step is placed on it.

## Why it costs
Everything runs on the CPU. For convolutions and large matrix products that is commonly ten to a hundred
times slower. There is no error: TensorFlow prints a line among many at the start and goes on.

## How it looks
```python
os.environ["CUDA_VISIBLE_DEVICES"] = ""          # left over from a test
import tensorflow as tf

print(tf.config.list_physical_devices("GPU"))    # []
with tf.device("/CPU:0"):                        # or this, around the whole model
    model = build_model()
```

## The cure
Find out which of the usual reasons holds; `flatout env` checks them in this order:
- a package built without CUDA: `tensorflow-cpu`, or the plain wheel without its CUDA libraries: `pip
  install "tensorflow[and-cuda]"`;
- libraries missing or of another version: see `library-mismatch`;
- the device hidden: `CUDA_VISIBLE_DEVICES`, a container started without `--gpus`, a driver that is not
  loaded;
- a `tf.device("/CPU:0")` or `tf.config.set_visible_devices([], "GPU")` in the program.
```python
print(tf.sysconfig.get_build_info()["is_cuda_build"], tf.config.list_physical_devices("GPU"))
```
- Equivalence: reassociated. Kernels of another device sum in another order; TF32 on recent GPUs is
  **precision**.

## When it is not worth it
For tiny models, trees of small operations and much string handling the CPU can be faster, as each launch
and copy has a price. Keeping the input pipeline on the CPU is right.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix
from flatout.source.analysis.patterns import Match, pattern
from flatout.source.analysis.scopes import Site
from flatout.source.analysis.syntax import constant

HIDES_ALL = ("", "-1")
"""Values of CUDA_VISIBLE_DEVICES."""


def in_run(case: Case) -> Iterator[Finding]:
    tensorflow = case.environment.get("tensorflow") or {}
    devices = tensorflow.get("devices") or []
    present = queries.gpus_present(case)
    if not devices or not present or any("GPU" in name for name in devices):
        return
    built = (tensorflow.get("build") or {}).get("is_cuda_build")
    hidden = (case.environment.get("variables") or {}).get("CUDA_VISIBLE_DEVICES")
    why = "this TensorFlow was built without CUDA" if built is False else "TensorFlow could not use it"
    advice = 'Install the build for GPUs: pip install "flatout[gpu]"; `flatout env` says what does not match.'
    if built is not False and hidden is not None and str(hidden).strip() in HIDES_ALL:
        why = f"CUDA_VISIBLE_DEVICES={hidden!r} hides it"
        advice = "Unset CUDA_VISIBLE_DEVICES, if that was for a test."
    yield from queries.finding(
        "gpu-unused",
        case,
        f"The machine has {present[0]}, but {why}: everything ran on the CPU.",
        cost_ms=None,
        where=None,
        evidence=[],
        fixes=[Fix(advice)],
        estimate="not measured: nothing ran on the GPU",
    )


# ── how it looks in source ───────────────────────────────────────────────────────────────────────────────────────


@pattern("hidden", nodes=(ast.Assign,), words=("CUDA_VISIBLE_DEVICES",), default=False)
def _hidden(node: ast.Assign, site: Site) -> Iterator[Match]:
    """`os.environ["CUDA_VISIBLE_DEVICES"] = "-1"`"""
    target = node.targets[0]
    if not isinstance(target, ast.Subscript) or constant(target.slice) != "CUDA_VISIBLE_DEVICES":
        return
    if constant(node.value) in ("-1", "") and not site.arms:
        yield Match(
            node,
            "The program hides all GPUs from TensorFlow: everything runs on the CPU.",
            "Delete the line, if that was for a test; the environment can say it from outside.",
            "reassociated",
        )


CAUSE = Cause(
    group="hardware",
    in_run=in_run,
    patterns=(_hidden,),
)
