"""Arguments of a call: finds, adds, replaces and drops them, keeping the style of the call."""

from __future__ import annotations

import re

import libcst as cst

from flatout.source.editing.document import Document

WIDTH = 100
"""In a call over several lines, a line of arguments is not made longer than this."""


def keyword(call: cst.Call, name: str) -> cst.Arg | None:
    return next((arg for arg in call.args if arg.keyword is not None and arg.keyword.value == name), None)


def takes_unknown(call: cst.Call) -> bool:
    """`**settings` may contain any keyword."""
    return any(arg.star == "**" for arg in call.args)


def settings(document: Document, node: cst.BaseExpression) -> set[str] | None:
    """The keywords that `**settings` holds; None where the file does not show them all."""
    text = document.text(node)
    if isinstance(node, (cst.Name, cst.Attribute)):
        bound = [assign.value for assign in document.all(cst.Assign) if _names(document, assign) == [text]]
        changed = re.search(
            rf"(?<![\w.]){re.escape(text)}\s*(\[|\.\s*(update|setdefault|pop|clear)\b|\|=)", document.source
        )
        if len(bound) != 1 or changed or any(param.name.value == text for param in document.all(cst.Param)):
            return None
        node = bound[0]
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "dict":
        plain = all(arg.keyword is not None for arg in node.args)
        return {arg.keyword.value for arg in node.args if arg.keyword is not None} if plain else None
    if not isinstance(node, cst.Dict):
        return None
    keys = [item.key for item in node.elements if isinstance(item, cst.DictElement)]
    if len(keys) != len(node.elements) or not all(isinstance(key, cst.SimpleString) for key in keys):
        return None
    return {str(key.evaluated_value) for key in keys if isinstance(key, cst.SimpleString)}


def _names(document: Document, assign: cst.Assign) -> list[str]:
    return [document.text(target.target) for target in assign.targets]


def literal(node: cst.CSTNode) -> str:
    """`True`, `None`, `3` or `"text"` as Python writes it; empty for anything else."""
    if isinstance(node, cst.Name) and node.value in ("True", "False", "None"):
        return node.value
    if isinstance(node, (cst.Integer, cst.Float)):
        return node.value
    if isinstance(node, cst.SimpleString):
        return repr(node.evaluated_value)
    return ""


def set_argument(document: Document, call: cst.Call, name: str, value: str) -> bool:
    """Give a call `name=value`. An existing value is replaced only if it is a literal."""
    given = keyword(call, name)
    if given is None:
        if takes_unknown(call):
            return False
        add(document, call, f"{name}={value}")
        return True
    if not literal(given.value) or literal(given.value) == value:
        return False
    document.replace(*document.span(given.value), value)
    return True


def add(document: Document, call: cst.Call, text: str) -> None:
    """Add one argument at the end of a call."""
    closing = document.span(call)[1] - 1
    if not call.args:
        document.insert(closing, text)
        return
    last = call.args[-1]
    start, end = document.span(last)
    comma = isinstance(last.comma, cst.Comma)
    between = document.source[end:closing]
    if "\n" in between or "\r" in between:
        # The closing parenthesis has a line of its own; comments stay with their arguments.
        line_end = document.line_end(end)
        if not comma:
            document.insert(end, ",")
        begin = document.span(call.args[0])[0] if not document.begins_its_line(start) else start
        indentation = document.indentation(begin)
        document.insert(line_end, f"{document.newline}{indentation}{text}" + ("," if comma else ""))
    elif _breaks_before(document, last) and not comma:
        document.insert(end, f",{document.newline}{document.indentation(start)}{text}")
    elif comma:
        document.insert(closing, f" {text}," if between.strip() == "," and between.endswith(",") else f"{text},")
    else:
        broken = len(document.lines(call)) > 1
        long = closing - document.line_start(closing) + len(text) > WIDTH
        first = document.span(call.args[0])[0]
        if broken and long and document.lines(call.args[0])[0] != document.lines(last)[0]:
            pad = " " * (first - document.line_start(first))
            document.insert(end, f",{document.newline}{pad}{text}")
        else:
            document.insert(end, f", {text}")


def _breaks_before(document: Document, arg: cst.Arg) -> bool:
    return document.begins_its_line(document.span(arg)[0])


def drop(document: Document, call: cst.Call, arg: cst.Arg) -> None:
    """Remove one argument with its comma, and with its lines if nothing else is on them."""
    index = call.args.index(arg)
    start, end = document.span(arg)
    closing = document.span(call)[1] - 1
    after = document.source[end : document.line_end(end)]
    rest = after.lstrip().removeprefix(",").lstrip()
    if document.begins_its_line(start) and (not rest or rest.startswith("#")):
        document.replace(document.line_start(start), document.next_line(end), "")
        return
    if index == 0:
        following = document.span(call.args[1])[0] if len(call.args) > 1 else closing
        document.replace(start, following, "")
        return
    before = document.span(call.args[index - 1])[1]
    if "#" in document.source[before:start]:
        before = start  # the comment in between belongs to the previous argument
    document.replace(before, end, "")
