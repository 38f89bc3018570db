"""The causes of slowness, one file each, and the diagnosis that looks for all of them in a Case.

A cause is a module of this package. Its name is the file's name with dashes (`host_sync.py` → `host-sync`), its
docstring is its page (`flatout explain`, docs/causes/), and `CAUSE = Cause(…)` declares the rest: `_spec.py` says what
can be declared. Nothing else registers a cause. Files in `DIR/causes/`, for a DIR of FLATOUT_PLUGINS, are causes too.
"""

from flatout.causes._catalogue import catalogue, find, patterns
from flatout.causes._diagnosis import diagnose
from flatout.causes._run_parts import drawing_seconds
from flatout.causes._run_sentence import sentence as run_sentence
from flatout.causes._spec import GROUPS, WORTH, Cause

__all__ = ["GROUPS", "WORTH", "Cause", "catalogue", "diagnose", "drawing_seconds", "find", "patterns", "run_sentence"]
