"""Changes nothing: shows what the method itself cannot tell apart.

## What it does
Nothing. The program with this lever is the program.

## When it pays
Never. `flatout tune --lever placebo PROGRAM` shows how far apart two equal programs seem on this machine; a
win here would be a fault of flatout.

## What it changes
Nothing: exact.
"""

from __future__ import annotations

from types import ModuleType

from flatout.model.case import Equivalence
from flatout.observe.injection import Injection

EQUIVALENCE: Equivalence = "exact"
SIDE = "runtime"
UNASKED = False


def on_tensorflow(injection: Injection, module: ModuleType) -> None:
    injection.changed()
