"""TensorFlow runs without its oneDNN kernels.

## What it does
Sets `TF_ENABLE_ONEDNN_OPTS=0` before the program starts.

## When it pays
For some small models on x86 CPUs: oneDNN chooses and reorders for large operations, and that choice itself costs
time. Where convolutions and matrix products are large, its kernels win.

## What it changes
Reassociated: other kernels sum in another order.

## In the source
```sh
TF_ENABLE_ONEDNN_OPTS=0 python train.py
```
"""

from __future__ import annotations

import os
import platform
from types import ModuleType

from flatout.case import Case, Equivalence
from flatout.causes import reading
from flatout.levers.injection import Injection

EQUIVALENCE: Equivalence = "reassociated"
SIDE = "runtime"

VARIABLE = "TF_ENABLE_ONEDNN_OPTS"


def skip(case: Case) -> str | None:
    if os.environ.get(VARIABLE) == "0":
        return f"{VARIABLE}=0 is already set"
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return "TensorFlow uses oneDNN by default on x86 CPUs only"
    if reading.gpus_in_use(case):
        return "the program computes on a GPU"
    return None


def environment(value: str) -> dict[str, str]:
    return {VARIABLE: "0"}


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    if os.environ.get(VARIABLE) == "0":
        injection.changed("without oneDNN kernels")
