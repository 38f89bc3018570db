"""A call without one of its arguments: `compile(…, run_eagerly=True)` → `compile(…)`"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import libcst as cst

from flatout.source.editing import calls
from flatout.source.editing.document import Document


def apply(document: Document, node: cst.CSTNode, data: Mapping[str, Any]) -> bool:
    given = calls.keyword(node, str(data["name"])) if isinstance(node, cst.Call) else None
    if not isinstance(node, cst.Call) or given is None:
        return False
    calls.drop(document, node, given)
    return True
