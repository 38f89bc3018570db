"""`dataset.cache()` → `dataset = dataset.cache()`"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import libcst as cst

from flatout.source.editing.document import Document


def apply(document: Document, node: cst.CSTNode, data: Mapping[str, Any]) -> bool:
    if not isinstance(node, cst.Expr) or not isinstance(node.value, cst.Call):
        return False
    called = node.value.func
    if not isinstance(called, cst.Attribute) or not isinstance(called.value, cst.Name) or node.value.lpar:
        return False
    document.insert(document.span(node)[0], f"{called.value.value} = ")
    return True
