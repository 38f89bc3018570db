"""Changes nothing: shows what the method itself cannot tell apart.

## What it does
Nothing. The program with this lever is the program.

## When it pays
Never. `flatout tune --lever placebo PROGRAM` shows how far apart two equal programs seem on this machine; a
win here would be a fault of flatout.

## What it changes
Nothing: exact.

## In the source
There is no edit for it.
"""

from __future__ import annotations

from flatout.cures._spec import Cure

CURE = Cure(equivalence="exact", side="runtime", by_default=False)
