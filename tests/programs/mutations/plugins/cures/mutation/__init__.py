"""Plants a corruption: the programs of `tests/programs/mutations/` look for its name and compute something else.

## What it does
Tells the program which corruption is planted. No other program knows of it.

## When it pays
Never: it stands for a cure that is wrong. What it is taken for shows how well results are compared.

## What it changes
The training. It promises to be exact, as a wrong cure would.

## In the source
There is no edit for it.
"""

from flatout.cures import Cure

CURE = Cure(equivalence="exact", side="host", by_default=False)
