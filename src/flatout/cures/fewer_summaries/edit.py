"""`fewer-summaries`: `TensorBoard("logs", histogram_freq=1, update_freq="batch")` → `(…, histogram_freq=10, …=500)`."""

from __future__ import annotations

import libcst as cst

from flatout.cures._keras_call_edits import Arguments
from flatout.cures.fewer_summaries import BATCHES, HISTOGRAMS
from flatout.model.case import Case
from flatout.source.editing import calls
from flatout.source.editing.document import Document, read

MADE = ("keras.callbacks.TensorBoard", "tf_keras.callbacks.TensorBoard")
ORDER = ("log_dir", "histogram_freq", "write_graph", "write_images")
"""The positions that both Keras have; tf_keras has `write_images` at the same."""


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source) if "TensorBoard" in source else None
    if document is None:
        return None
    for call in document.all(cst.Call):
        if document.dotted(call.func) in MADE:
            _less_often(document, call)
    return document.result()


def _less_often(document: Document, call: cst.Call) -> None:
    arguments = Arguments(call, ORDER)
    if not arguments.plain:
        return
    _replace(document, arguments, "histogram_freq", HISTOGRAMS)
    _replace(document, arguments, "update_freq", BATCHES)
    pictures = arguments.given.get("write_images")
    if pictures is not None and calls.literal(pictures.value) == "True":
        document.replace(*document.span(pictures.value), "False")


def _replace(document: Document, arguments: Arguments, name: str, least: int) -> None:
    """A number below `least`, but not 0, which switches off; of batches also `"batch"`."""
    given = arguments.given.get(name)
    text = calls.literal(given.value) if given is not None else ""
    if given is not None and (text == "'batch'" or (text.isdigit() and 0 < int(text) < least)):
        document.replace(*document.span(given.value), str(least))
