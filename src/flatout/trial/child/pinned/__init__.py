"""For a run that only compares values: every random number depends on where it is drawn and how often, on nothing else.

Traced, compiled, unrolled or in a copy of its source, a program draws its numbers in another order, from other
generators, and XLA draws others than TensorFlow. So in the runs that compare a change with the baseline, and never in
those that are timed, each draw gets its number from the *place* in the source that asks for it and from how often that
place has asked:

- TensorFlow's stateful ops count in a variable, which an eager call and a traced one both advance, once per execution
- inside a function of tf.data, where calls run side by side, the element itself and how often it has come take the
  place of the count
- Keras' seed generators and `tf.random.Generator` count for themselves, and their bits are turned into numbers by
  formulas that XLA and TensorFlow compute alike
- `random` and `numpy.random` have a stream for each place

What comes from the clock, from `os.urandom` or from other processes stays as it is.

places.py       where a draw is asked for, in words that survive an edit of the source
counters.py     how often, eagerly, in graphs and in tf.data
numbers.py      from bits to normal, uniform and other numbers
ops.py          TensorFlow's random ops
generators.py   Keras' and TensorFlow's generators
order.py        elements of tf.data in their order
streams.py      `random` and `numpy.random`
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from flatout.observe.observer import Probe
from flatout.trial.child.pinned import counters, generators, ops, order, streams

if TYPE_CHECKING:
    from flatout.observe.observer import Observer


def install(seed: int) -> None:
    """Before any code of the program."""
    counters.begin(seed)
    streams.install(seed)


def on_tensorflow(observer: Observer, module: ModuleType) -> None:
    counters.watch(observer)
    ops.pin(observer)
    generators.pin_tensorflow(observer)
    order.pin(observer)


def on_keras(observer: Observer, module: ModuleType) -> None:
    generators.pin_keras(observer)


PROBE = Probe("pinned random numbers", tensorflow=on_tensorflow, keras=on_keras)
