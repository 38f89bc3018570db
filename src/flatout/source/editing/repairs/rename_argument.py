"""`experimental_compile=True` → `jit_compile=True`"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import libcst as cst

from flatout.source.editing import calls
from flatout.source.editing.document import Document


def apply(document: Document, node: cst.CSTNode, data: Mapping[str, Any]) -> bool:
    given = calls.keyword(node, str(data["name"])) if isinstance(node, cst.Call) else None
    if given is None or given.keyword is None:
        return False
    document.replace(*document.span(given.keyword), str(data["new"]))
    return True
