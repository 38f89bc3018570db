"""Whether source switches something on for debugging only."""

from __future__ import annotations

import ast
import re

from flatout.source.analysis.scopes import Site

_DEBUGGING = re.compile(r"debug|eager|trace|profil|verbose|test", re.IGNORECASE)


def named_for_debugging(text: str) -> bool:
    """Whether a name shows that it is on purpose: `eager_model`, `args.debug`."""
    return _DEBUGGING.search(text) is not None


def under_debug_flag(site: Site) -> bool:
    """Whether it stands under a flag for debugging: `if args.debug:`."""
    return any(isinstance(item, ast.If) and named_for_debugging(ast.unparse(item.test)) for item, _ in site.arms)
