"""Stages that only copy are dropped.

## What it does
Drops a map that changes nothing, a second prefetch or cache right behind the first, `repeat(1)`, and
`batch(n).unbatch()`.

## When it pays
Rarely by much: each dropped stage saves a copy or a call per element. It clears the way for other rewrites.

## What it changes
Exact: the same elements in the same order.

## In the source
Delete the stage.
"""

from __future__ import annotations

from flatout.cures._spec import Cure

CURE = Cure(does="drop stages that only copy", equivalence="exact", side="input", after=("autotune",))
