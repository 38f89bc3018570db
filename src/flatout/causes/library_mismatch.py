"""The installed driver, CUDA, cuDNN or Python packages do not fit this TensorFlow.

## What it is
Each TensorFlow release is built against one version of CUDA and cuDNN, and its wheel for CPUs against
certain vector instructions. Something on this machine is older, newer, missing, or there twice.

## Why it costs
At best a warning. At worst TensorFlow cannot load a library and runs on the CPU without an error
(`gpu-unused`). A GPU newer than the build has kernels for must compile them at the first start, which takes
minutes. An old driver lacks newer features. A wheel that was not built for the machine's vector
instructions runs its generic code.

## How it looks
```console
$ python train.py
Cannot dlopen some GPU libraries. Please make sure the missing libraries ...
Skipping registering GPU devices...
```

## The cure
Let pip bring the libraries that this release wants, and remove what stands in their way:
```console
$ pip install --upgrade "tensorflow[and-cuda]"
$ env -u LD_LIBRARY_PATH python train.py
```
`flatout env` lists what was found, what the build expects, and what to change. Two Keras versions in one
environment (`keras` and `tf_keras` with `TF_USE_LEGACY_KERAS`) are listed there too.
- Equivalence: reassociated. Another library version may choose other kernels.

No lever does this: a change of the installation is for its owner to make.

## When it is not worth it
When the program uses the devices that it should and nothing is recompiled at each start, a difference in a
minor version is harmless: minor versions of CUDA are compatible with each other.
"""

from __future__ import annotations

from collections.abc import Iterator

from flatout.causes._spec import Cause
from flatout.model import queries
from flatout.model.case import Case, Finding, Fix, Measurement

CHECKS = ("cuda-libraries", "gpu-driver", "versions")
"""Checks of `flatout env` that hold what is installed against what this TensorFlow was built for."""


def in_run(case: Case) -> Iterator[Finding]:
    from flatout.environment import readings  # loads what reads the machine, and `flatout check` loads all causes

    found = readings(case.environment) if case.environment else []
    wrong = [item for check, item in found if check.name in CHECKS and item.status == "fault"]
    if not wrong:
        return
    others = f" {len(wrong) - 1} more do not fit either." if len(wrong) > 1 else ""
    yield from queries.finding(
        "library-mismatch",
        case,
        f"{wrong[0].name} is {wrong[0].value}. {wrong[0].meaning}{others}",
        cost_ms=None,
        where=None,
        evidence=[Measurement("environment", item.value, source=item.name, note=item.meaning) for item in wrong],
        fixes=[Fix(todo) for todo in dict.fromkeys(item.todo for item in wrong)],
        estimate="not measured",
    )


CAUSE = Cause(
    group="hardware",
    in_run=in_run,
)
