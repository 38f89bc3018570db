"""`feed-dict`: an array that stays the same is brought to the placeholder's dtype once, above the loop."""

from __future__ import annotations

import libcst as cst

from flatout.model.case import Case
from flatout.model.evidence.steps import Feed
from flatout.source.editing import arrays, case_facts, imports, statements
from flatout.source.editing.document import Document, read

_PLACEHOLDERS = ("tensorflow.placeholder", "tensorflow.compat.v1.placeholder")
_DTYPES = ("float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64")
_ON_DISK = ("memmap", "mmap_mode", "numpy.load", "np.load")
"""Such an array may be larger than the memory: it is left where it is."""


def edit(source: str, path: str, case: Case, value: str) -> str | None:
    document = read(source)
    if document is None or not any(binding.stands_for == "numpy" for binding in imports.bindings(document)):
        return None
    made: dict[tuple[str, str, cst.CSTNode], str] = {}
    for line in case_facts.lines(case, path, "feed-dict"):
        for element in document.all(cst.DictElement):
            run = arrays.fed_to(document, element)
            if run is not None and line in document.lines(run) and _had_to_be(document, element, path, line, case):
                _convert_once(document, element, made)
    return document.result()


def _had_to_be(document: Document, element: cst.CSTNode, path: str, line: int, case: Case) -> bool:
    """Whether the session was seen to convert this element, by its position in the dictionary."""
    for item in case.evidence_of(Feed):
        if item.where is not None and item.where.line == line and case_facts.same_file(path, item.where.file):
            fed = document.parent(element)
            return not isinstance(fed, cst.Dict) or list(fed.elements).index(element) in item.positions  # type: ignore[arg-type]
    return True


def _convert_once(document: Document, element: cst.CSTNode, made: dict[tuple[str, str, cst.CSTNode], str]) -> None:
    assert isinstance(element, cst.DictElement)
    array = element.value
    part = isinstance(array, cst.Subscript)
    while isinstance(array, cst.Subscript):
        array = array.value
    dtype = _dtype(document, element.key)
    loop = arrays.unchanging_loop(document, array, element) if dtype else None
    if loop is None or _is_converted(document, array) or (part and not _in_memory(document, array)):
        return
    text = document.text(array)
    known = made.get((text, dtype, loop))
    if known is None:
        known = made[text, dtype, loop] = arrays.free_name(document, array, dtype)
        convert = imports.spell(document, "numpy.asarray", element)
        kind = imports.spell(document, f"numpy.{dtype}", element)
        statements.before(document, loop, f"{known} = {convert}({text}, {kind})")
    document.replace(*document.span(array), known)


def _dtype(document: Document, key: cst.BaseExpression) -> str:
    """The dtype of the placeholder that a name stands for; empty where the source does not tell."""
    made = arrays.only_value(document, key)
    if not isinstance(made, cst.Call) or document.dotted(made.func) not in _PLACEHOLDERS:
        return ""
    given = next((arg for arg in made.args if arg.keyword is not None and arg.keyword.value == "dtype"), None)
    given = given or next((arg for arg in made.args[:1] if arg.keyword is None), None)
    dotted = document.dotted(given.value) if given is not None else ""
    name = dotted.rpartition(".")[2] if dotted.startswith("tensorflow.") else ""
    return name if name in _DTYPES else ""


def _is_converted(document: Document, array: cst.BaseExpression) -> bool:
    value = arrays.only_value(document, array)
    return isinstance(value, cst.Call) and document.dotted(value.func) == "numpy.asarray" and len(value.args) > 1


def _in_memory(document: Document, array: cst.BaseExpression) -> bool:
    """Where only a part of it is fed: whether the whole is an array in memory, so that it may be converted."""
    value = arrays.only_value(document, array)
    on_disk = value is not None and any(word in document.text(value) for word in _ON_DISK)
    return arrays.from_numpy(document, array) and not on_disk
