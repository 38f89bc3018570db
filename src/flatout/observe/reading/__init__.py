"""The parent's half: a recording becomes a Case. Nothing here imports TensorFlow."""

from flatout.observe.reading.assemble import assemble

__all__ = ["assemble"]
