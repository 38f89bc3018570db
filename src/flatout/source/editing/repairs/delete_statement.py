"""A statement goes, with its comment; a block that it was all of keeps a `pass`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import libcst as cst

from flatout.source.editing import statements
from flatout.source.editing.document import Document


def apply(document: Document, node: cst.CSTNode, data: Mapping[str, Any]) -> bool:
    small = node if isinstance(node, cst.BaseSmallStatement) else document.nearest(node, cst.Expr, cst.Assign)
    if not isinstance(small, (cst.Expr, cst.Assign)):
        return False
    statements.delete(document, small)
    return True
