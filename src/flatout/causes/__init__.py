"""The catalogue: one file per cause of slowness.

A cause is a module of this package. Its name is the file's name with dashes (`host_sync.py` → `host-sync`), and

- its docstring is its page: the first line is the title, the rest is Markdown (`flatout explain`, docs);
- `GROUP` is one of input, graph, numerics, hardware, api;
- `LEVERS` names the levers that may cure it;
- `in_run(case)` yields a `Finding` for each place where the cause is at work in an observed run or trace;
- functions marked with `@pattern` yield a `Seen` for each place of a source file that shows the cause.

A cause has one of both, or both.

Nothing else registers a cause: `catalogue()` finds the files.
"""

from flatout.causes.catalogue import Cause, catalogue, find

__all__ = ["Cause", "catalogue", "find"]
