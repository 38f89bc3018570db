"""`@tf.function` above a function that has no decorator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import libcst as cst

from flatout.source.editing.document import Document
from flatout.source.editing.repairs import spelled


def apply(document: Document, node: cst.CSTNode, data: Mapping[str, Any]) -> bool:
    if not isinstance(node, cst.FunctionDef) or node.decorators or node.asynchronous is not None:
        return False
    start = document.span(node)[0]
    if not document.begins_its_line(start):
        return False
    written = spelled(document, str(data["with"]), node)
    if written is None:
        return False
    document.insert(start, f"@{written}{document.newline}{document.indentation(start)}")
    return True
