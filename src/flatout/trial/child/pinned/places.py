"""Where a random number is asked for, in words that survive an edit of the source.

A line number would not do, nor would the function: an edited copy of the program has other lines, and may have the same
statement in a function that was taken out of a loop. In the user's code a place is the text of the calls in the
statement that draw, with what other calls inside of them work on; in a library it is the function.
"""

from __future__ import annotations

import ast
import copy
import linecache
import re
import sys
import threading
from types import CodeType, FrameType
from typing import Any

from flatout.source import users_code

_NOT_A_PLACE = ("tensorflow", "flatout", "random", "numpy", "functools", "contextlib", "secrets")
"""What is between the place and the draw."""
_DRAWS = re.compile(
    r"random|normal|uniform|shuffle|choice|categorical|multinomial|dropout|sampl|noise|rand|gauss|bernoulli|permutation"
    r"|rng|crop|flip|jitter|augment|poisson|gamma"
)
_LONGEST = 400

_known: dict[tuple[CodeType, int], str] = {}
seen: set[str] = set()
"""Places that have drawn."""
_statements: dict[str, tuple[int, list[tuple[int, int, str]]]] = {}


def here(depth: int = 1) -> str:
    """The place of the call that led to the caller of this function."""
    frame: FrameType | None = sys._getframe(depth + 1)
    while frame is not None:
        place = _place(frame)
        if place is not None:
            seen.add(place)
            return place
        frame = frame.f_back
    return ""


def caller(depth: int = 1) -> str:
    """As `here`; for a library, together with the user's function that called it."""
    place = here(depth + 1)
    if not place.startswith("in "):
        return place
    frame = users_code.innermost(sys._getframe(depth + 1))
    return place if frame is None else f"{place} from {frame.f_code.co_name}"


def _root(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _place(frame: FrameType) -> str | None:
    code = frame.f_code
    if "__autograph_generated_file" in code.co_filename:
        return _traced_place(code, frame.f_lineno)
    if code.co_filename.startswith("<") or _root(frame) in _NOT_A_PLACE:
        return None
    key = code, frame.f_lasti
    known = _known.get(key)
    if known is None:
        if users_code.is_users(code):
            known = _text(code.co_filename, frame.f_lineno) or f"in {code.co_name}"
        else:
            known = f"in {frame.f_globals.get('__name__')}.{code.co_name}"
        _known[key] = known
    return known


def _traced_place(code: CodeType, line: int) -> str | None:
    """AutoGraph runs code that it has made; it knows which line each of its lines came from."""
    from tensorflow.python.util import tf_stack

    try:
        origins: Any = tf_stack._source_mapper_stacks[threading.get_ident()][-1].get_effective_source_map()
    except Exception:
        return None
    origin = origins.get((code.co_filename, line))
    if origin is None:
        return None
    filename, line, name = origin
    if users_code.is_users_file(filename):
        return _text(filename, line) or f"in {name}"
    return f"in {_module(filename)}.{name}"


def _module(filename: str) -> str:
    modules = (module for module in list(sys.modules.values()) if getattr(module, "__file__", None) == filename)
    return getattr(next(modules, None), "__name__", filename)


# ── statements ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _text(filename: str, line: int) -> str:
    """The calls that draw in the smallest statement around this line; the whole statement where none looks like it."""
    around = [(end - begin, text) for begin, end, text in _texts(filename) if begin <= line <= end]
    return min(around, key=lambda item: item[0])[1] if around else ""


def _texts(filename: str) -> list[tuple[int, int, str]]:
    lines = linecache.getlines(filename)
    known = _statements.get(filename)
    if known is not None and known[0] == len(lines):
        return known[1]
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        tree = ast.Module([], [])
    found = [_statement(node) for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    _statements[filename] = len(lines), found
    return found


def _statement(node: ast.stmt) -> tuple[int, int, str]:
    """First line, last line and text; of a statement with a body, those of its head."""
    body = getattr(node, "body", None)
    end = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno or node.lineno
    own = [child for child in ast.iter_child_nodes(node) if not isinstance(child, (ast.stmt, ast.ExceptHandler))]
    calls = (one for child in own for one in ast.walk(child) if isinstance(one, ast.Call))
    drawing = [_call(one) for one in calls if _DRAWS.search(_name(one.func).lower())]
    text = "; ".join(drawing or map(ast.unparse, own)) or type(node).__name__
    return node.lineno, max(end, node.lineno), text[:_LONGEST]


def _call(node: ast.Call) -> str:
    """Without the call that it is chained to: `shuffle(100)` stays what it is where a stage comes in before it."""
    given = [ast.unparse(_Plain().visit(copy.deepcopy(one))) for one in (*node.args, *node.keywords)]
    return f"{_name(node.func)}({', '.join(given)})"


class _Plain(ast.NodeTransformer):
    """Leaves of other calls only what they work on: an edit may call the same model in another way."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = _name(node.func)
        if _DRAWS.search(name.lower()):
            self.generic_visit(node)
            return node
        if isinstance(node.func, ast.Attribute) and _calls(node.func.value):  # `….numpy().ravel()`
            chained: ast.expr = self.visit(node.func.value)
            return chained
        return ast.Call(ast.Name("_"), [self.visit(one) for one in node.args[:1]], [])


def _calls(node: ast.expr) -> bool:
    return any(isinstance(one, ast.Call) for one in ast.walk(node))


def _name(function: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(function, ast.Attribute):
        parts.insert(0, function.attr)
        function = function.value
    if isinstance(function, ast.Name):
        parts.insert(0, function.id)
    return ".".join(parts)


def shown(place: str) -> str:
    """For a message: short, on one line."""
    return " ".join(place.split())[:60]
