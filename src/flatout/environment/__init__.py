"""The audit of the machine, the drivers, the libraries and the flags of a TensorFlow program.

    gather.py      reads the facts of the machine into a plain dict
    child.py       facts that only TensorFlow knows, read in a child process: this process never imports it
    checks/        one check per file: facts in, readings out
    auditor.py     facts and readings as a Case

A check is registered nowhere else: `checks.catalogue()` finds the files.
"""

from flatout.environment.auditor import audit, readings, summary
from flatout.environment.reading import Facts, Reading

__all__ = ["Facts", "Reading", "audit", "readings", "summary"]
