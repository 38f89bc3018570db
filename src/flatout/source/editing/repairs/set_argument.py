"""A call gets `name=value`, or another value where it has one: `num_parallel_calls=tf.data.AUTOTUNE`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import libcst as cst

from flatout.source.editing import calls
from flatout.source.editing.document import Document
from flatout.source.editing.repairs import spelled


def apply(document: Document, node: cst.CSTNode, data: Mapping[str, Any]) -> bool:
    if not isinstance(node, cst.Call) or any(arg.star for arg in node.args):
        return False
    name = str(data["name"])
    given = calls.keyword(node, name)
    place = data.get("place")
    if given is None and place is not None and len(node.args) > place and node.args[place].keyword is None:
        given = node.args[place]
    value = str(data["text"]) if "text" in data else spelled(document, str(data["value"]), node)
    if value is None:
        return False
    if given is None:
        calls.add(document, node, f"{name}={value}")
    else:
        document.replace(*document.span(given.value), value)
    return True
