"""The checks of the environment, one file each.

A check is a module of this package: its docstring is its page (the first line is the title, the rest says what is
looked at and why it matters), and `CHECK = Check(…)` declares its group and its function. Nothing else registers it.
Files in `DIR/checks/`, for a DIR of FLATOUT_PLUGINS, are checks too.
"""

from __future__ import annotations

import functools

from flatout.environment.reading import GROUPS, Check
from flatout.plugins import Catalogue, Loaded

_CHECKS = Catalogue("flatout.environment.checks", declares="CHECK", kind=Check)


@functools.cache
def catalogue() -> dict[str, Loaded[Check]]:
    """All checks by name, in the order of their groups."""
    found = sorted(_CHECKS.all().values(), key=lambda check: (GROUPS.index(check.spec.group), check.name))
    return {check.name: check for check in found}
