"""Edits that cure what a pattern saw: one file per kind, each with `apply(document, node, data)`.

`node` is what the sighting is about; the edit registers its changes with the document and returns True, or returns
False where it is not sure. libcst tells what stands where; the change is a splice of the text, so that comments and
formatting stay.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import libcst as cst

from flatout.source.editing import names
from flatout.source.editing.document import Document, common

KINDS = (
    "assign-result",
    "decorate",
    "delete-statement",
    "drop-argument",
    "rename",
    "rename-argument",
    "rename-method",
    "set-argument",
    "swap-stages",
    "wrap",
)


def spelled(document: Document, wanted: str, node: cst.CSTNode) -> str | None:
    """How the file writes a name; None where none of its imports reaches it: an edit is not worth another import."""
    reached = any(
        wanted == common(binding.stands_for) or wanted.startswith(f"{common(binding.stands_for)}.")
        for binding in names.bindings(document, node)
    )
    # `tf.keras.…` reaches Keras where only TensorFlow is imported.
    package = "tensorflow" if wanted.startswith("keras.") else ""
    reached = reached or any(common(binding.stands_for) == package for binding in names.bindings(document, node))
    if not reached:
        return None
    return (
        names.autotune(document, node) if wanted == "tensorflow.data.AUTOTUNE" else names.spell(document, wanted, node)
    )


def apply(kind: str, document: Document, node: cst.CSTNode, data: Mapping[str, Any]) -> bool:
    module = importlib.import_module(f"flatout.source.editing.repairs.{kind.replace('-', '_')}")
    return bool(module.apply(document, node, data))
