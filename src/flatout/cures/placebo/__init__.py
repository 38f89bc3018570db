"""Changes nothing: shows how large a difference the measurement itself can produce.

## What it does
Nothing. The program with this lever is the program itself.

## When it pays
Never. `flatout tune --lever placebo PROGRAM` shows how much two equal programs differ on this machine; a win here
would be a bug in flatout.

## What it changes
Nothing: exact.

## In the source
There is no edit for it.
"""

from __future__ import annotations

from flatout.cures._spec import Cure

CURE = Cure(does="change nothing (placebo)", equivalence="exact", side="runtime", by_default=False)
