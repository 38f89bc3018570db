"""TensorFlow runs without its oneDNN kernels where they are the default, and with them where they are not.

## What it does
Sets `TF_ENABLE_ONEDNN_OPTS` before the program starts: to 0 on x86, to 1 on ARM (`onednn=1`).

## When it pays
On x86, for some small models: oneDNN selects kernels and reorders data for large operations, which itself costs time.
For large convolutions and matrix products its kernels are faster. On most ARM CPUs TensorFlow leaves them off, and
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

from flatout.cures._spec import Cure
from flatout.model import queries
from flatout.model.case import Case

VARIABLE = "TF_ENABLE_ONEDNN_OPTS"
_OTHER_WAY = {"x86_64": "0", "amd64": "0", "aarch64": "1", "arm64": "1"}
"""Than TensorFlow has it by default. On some ARM servers it is on as well: the trial shows no difference there."""


def skip(case: Case) -> str | None:
    wanted = _OTHER_WAY.get(platform.machine().lower())
    if wanted is None:
        return "TensorFlow has oneDNN kernels for x86 and ARM CPUs only"
    if os.environ.get(VARIABLE) == wanted:
        return f"{VARIABLE}={wanted} is already set"
    if queries.gpus_in_use(case):
        return "the program computes on a GPU"
    return None


def values(case: Case) -> Sequence[str]:
    return ("1",) if _OTHER_WAY.get(platform.machine().lower()) == "1" else ("",)


def environment(value: str) -> dict[str, str]:
    return {VARIABLE: "1" if value == "1" else "0"}


CURE = Cure(
    does={
        "0": "switch oneDNN's kernels off",
        "1": "switch oneDNN's kernels on",
        "": "switch oneDNN's kernels",
    },
    equivalence="reassociated",
    side="runtime",
    values=values,
    skip=skip,
    environment=environment,
)
