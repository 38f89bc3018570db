"""A Python generator runs in a process of its own and sends its elements in chunks.

## What it does
Forks a process at the start of each epoch, which runs the generator ahead of the program and sends stacked chunks of
elements. Only for generators of plain arrays that take no arguments and do not use TensorFlow, Keras, JAX or PyTorch:
their threads do not survive a fork. On Linux only.

## When it pays
When `Dataset.from_generator` takes the time: the generator no longer competes with the program for the interpreter
lock, and TensorFlow calls into Python once for each chunk instead of once for each element.

## What it changes
Exact: the same elements in the same order. Side effects of the generator stay in its process.

## In the source
There is no edit for it. By hand, write the generator's elements to files (`flatout data convert`) or use a
`multiprocessing` queue.
"""

from __future__ import annotations

from flatout.cures._spec import Cure

CURE = Cure(does="run the generator in a process of its own", equivalence="exact", side="input", after=("forward",))
