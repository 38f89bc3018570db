"""TensorFlow runs without its oneDNN kernels where they are its choice, and with them where they are not.

## What it does
Sets `TF_ENABLE_ONEDNN_OPTS` before the program starts: to 0 on x86, to 1 on ARM (`onednn=1`).

## When it pays
On x86, for some small models: oneDNN chooses and reorders for large operations, and that choice itself costs time.
Where convolutions and matrix products are large, its kernels win. On most ARM CPUs TensorFlow leaves them off, and
large convolutions are faster with them.

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
from collections.abc import Sequence
from types import ModuleType

from flatout.case import Case, Equivalence
from flatout.causes import reading
from flatout.levers.injection import Injection

EQUIVALENCE: Equivalence = "reassociated"
SIDE = "runtime"

VARIABLE = "TF_ENABLE_ONEDNN_OPTS"
_ON_BY_DEFAULT = {"x86_64": True, "amd64": True, "aarch64": False, "arm64": False}
"""By the machine. Some ARM CPUs of servers have it on as well: the trial makes no difference there."""


def skip(case: Case) -> str | None:
    if platform.machine().lower() not in _ON_BY_DEFAULT:
        return "TensorFlow has oneDNN kernels for x86 and ARM CPUs only"
    wanted = environment(*values(case))[VARIABLE]
    if os.environ.get(VARIABLE) == wanted:
        return f"{VARIABLE}={wanted} is already set"
    if reading.gpus_in_use(case):
        return "the program computes on a GPU"
    return None


def values(case: Case) -> Sequence[str]:
    return ("",) if _ON_BY_DEFAULT.get(platform.machine().lower(), True) else ("1",)


def environment(value: str) -> dict[str, str]:
    return {VARIABLE: "1" if value == "1" else "0"}


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    wanted = environment(injection.value)[VARIABLE]
    if os.environ.get(VARIABLE) == wanted:
        injection.changed("with oneDNN kernels" if wanted == "1" else "without oneDNN kernels")
