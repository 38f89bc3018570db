"""A dotted name gives way to another, written as this file writes such names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import libcst as cst

from flatout.source.editing.document import Document
from flatout.source.editing.repairs import spelled


def apply(document: Document, node: cst.CSTNode, data: Mapping[str, Any]) -> bool:
    if not isinstance(node, cst.Attribute):
        return False  # a name that was imported by itself: its import would have to go too
    written = spelled(document, str(data["new"]), node)
    if written is None:
        return False
    document.replace(*document.span(node), written)
    return True
