"""Sessions of TensorFlow 1 in a source file."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from flatout.source.editing.document import Document

_SESSIONS = tuple(
    f"tensorflow.{package}{name}" for package in ("", "compat.v1.") for name in ("Session", "InteractiveSession")
)


def constructions(document: Document) -> Iterator[cst.Call]:
    """`tf.Session(…)` and `tf.InteractiveSession(…)`, in the order of the text."""
    for call in document.all(cst.Call):
        if document.dotted(call.func) in _SESSIONS:
            yield call
