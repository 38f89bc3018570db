"""XPlane traces → columns → steps, ops, memory, copies, idle time. Nothing here imports TensorFlow."""

from flatout.trace.assemble import analyse
from flatout.trace.xplane import find_files, load

__all__ = ["analyse", "find_files", "load"]
