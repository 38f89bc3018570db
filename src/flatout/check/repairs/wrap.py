"""An expression becomes the argument of a call: `i` → `tf.constant(i)`"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import libcst as cst

from flatout.source.rewrite import names
from flatout.source.rewrite.document import Document


def apply(document: Document, node: cst.CSTNode, data: Mapping[str, Any]) -> bool:
    if not isinstance(node, cst.BaseExpression):
        return False
    start, end = document.span(node)
    written = names.spell(document, str(data["with"]), node)
    document.replace(start, end, f"{written}({document.source[start:end]})")
    return True
