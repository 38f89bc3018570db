"""Run a program in a child process and watch it.

The parent (`launcher`, `recording`, `assemble`) never imports TensorFlow. The child is the user's own Python running
the user's own program; `site/sitecustomize.py` wakes `child`, which installs the probes when TensorFlow is imported.
A probe only observes; it never changes what the program computes.
"""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from flatout.observe.inside import Observation


class _Room(types.ModuleType):
    """`flatout.observe` is this package, and users call it: `with flatout.observe():`."""

    def __call__(self, *, trace: bool = True, show: bool = True) -> AbstractContextManager[Observation]:
        """Observe a block of this program, for those who cannot use the command line (a notebook).

        with flatout.observe() as seen:
            model.fit(dataset)
        seen.case.findings
        """
        from flatout.observe import inside

        return inside.observe(trace=trace, show=show)


sys.modules[__name__].__class__ = _Room
