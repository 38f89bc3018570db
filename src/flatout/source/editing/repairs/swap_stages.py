"""`.batch(32).shuffle(1000)` → `.shuffle(1000).batch(32)`"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import libcst as cst

from flatout.source.editing.document import Document


def apply(document: Document, node: cst.CSTNode, data: Mapping[str, Any]) -> bool:
    """The texts of both methods change places; what stands between them (dots, breaks, comments) stays."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    inner = node.func.value
    if not isinstance(inner, cst.Call) or not isinstance(inner.func, cst.Attribute) or inner.lpar:
        return False
    second = (document.span(node.func.attr)[0], document.span(node)[1])
    first = (document.span(inner.func.attr)[0], document.span(inner)[1])
    texts = document.source[first[0] : first[1]], document.source[second[0] : second[1]]
    document.replace(*first, texts[1])
    document.replace(*second, texts[0])
    return True
