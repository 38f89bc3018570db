"""An expression becomes the argument of a call: `i` → `tf.constant(i)`"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import libcst as cst

from flatout.source.editing.document import Document
from flatout.source.editing.repairs import spelled


def apply(document: Document, node: cst.CSTNode, data: Mapping[str, Any]) -> bool:
    if not isinstance(node, cst.BaseExpression):
        return False
    start, end = document.span(node)
    written = spelled(document, str(data["with"]), node)
    if written is None:
        return False
    document.replace(start, end, f"{written}({document.source[start:end]})")
    return True
