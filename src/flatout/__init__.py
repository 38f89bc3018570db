"""flatout finds out why a TensorFlow program is slow, fixes it, and proves the fix on that very program."""

__version__ = "0.1.0"
