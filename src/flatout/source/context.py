"""What is around a line of the user's source: its text, its loops, its function."""

from __future__ import annotations

import ast
import builtins
import functools
import linecache
from dataclasses import dataclass
from pathlib import Path

from flatout.model.case import Where


@dataclass(frozen=True)
class Loop:
    line: int
    end: int
    iterated: str
    """Source of what a `for` iterates over; empty for `while`."""
    variables: tuple[str, ...]
    in_function: str | None


@functools.lru_cache(maxsize=256)
def lines(file: str) -> tuple[str, ...]:
    try:
        text = Path(file).read_text(encoding="utf-8-sig", errors="replace")
        # Not `splitlines`, which ends a line at a form feed and at characters of strings as well: Python does not.
        return tuple(text.removesuffix("\n").split("\n")) if text else ()
    except ValueError:  # a name that no file can have
        return ()
    except OSError:
        # A cell of a notebook is no file; the kernel that observes itself has its text where tracebacks find it.
        return tuple(line.rstrip("\n") for line in linecache.getlines(file))


def where(file: str | None, line: int | None, function: str | None = None) -> Where | None:
    if not file:
        return None
    text = lines(file)
    code = text[line - 1].strip()[:300] if line and 0 < line <= len(text) else None
    return Where(file, line, None if function in (None, "<module>") else function, code)


@functools.lru_cache(maxsize=256)
def tree(file: str) -> ast.Module | None:
    try:
        return ast.parse("\n".join(lines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return None


@functools.lru_cache(maxsize=256)
def loops(file: str) -> tuple[Loop, ...]:
    """All `for` and `while` statements of a file, outer ones first."""
    module = tree(file)
    found: list[Loop] = []

    def visit(node: ast.AST, function: str | None) -> None:
        for child in ast.iter_child_nodes(node):
            inner = child.name if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) else function
            if isinstance(child, (ast.For, ast.AsyncFor)):
                names = tuple(n.id for n in ast.walk(child.target) if isinstance(n, ast.Name))
                found.append(
                    Loop(
                        child.lineno,
                        child.end_lineno or child.lineno,
                        ast.unparse(child.iter),
                        names,
                        function,
                    )
                )
            elif isinstance(child, ast.While):
                found.append(Loop(child.lineno, child.end_lineno or child.lineno, "", (), function))
            visit(child, inner)

    if module is not None:
        visit(module, None)
    return tuple(found)


@functools.lru_cache(maxsize=256)
def calls_of(file: str, name: str) -> tuple[int, ...]:
    """Lines that call a function or method of this name."""
    module = tree(file)
    found = [
        node.lineno
        for node in (ast.walk(module) if module is not None else ())
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == name
    ]
    return tuple(sorted(found))


def innermost_loop(file: str, line: int) -> Loop | None:
    around = [loop for loop in loops(file) if loop.line < line <= loop.end]
    return max(around, key=lambda loop: loop.line, default=None)


def enclosing_loops(file: str, line: int) -> list[Loop]:
    """Innermost first."""
    return sorted((loop for loop in loops(file) if loop.line < line <= loop.end), key=lambda loop: -loop.line)


@functools.lru_cache(maxsize=1024)
def definition_line(file: str, line: int) -> int | None:
    """The `def` line of the function around a line (decorators do not count), None at module level."""
    module = tree(file)
    if module is None:
        return None
    around = [
        node.lineno
        for node in ast.walk(module)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and min([node.lineno, *(d.lineno for d in node.decorator_list)]) <= line <= (node.end_lineno or node.lineno)
    ]
    return max(around, default=None)


def tape_line(file: str, line: int) -> int | None:
    """The nearest `with tf.GradientTape()` at or before a line, in the same function or also at module level.

    Around the line or in the loop that it is in: what stands before that loop trains something else.
    """
    module = tree(file)
    if module is None:
        return None
    scope = _scope_of(module, line)
    inside = [loop for loop in enclosing_loops(file, line) if loop.line >= getattr(scope, "lineno", 0)]
    begin = inside[-1].line if inside else 0
    tapes = [
        node.lineno
        for node in ast.walk(scope)
        if isinstance(node, ast.With)
        and node.lineno <= line
        and (node.lineno >= begin or (node.end_lineno or 0) >= line)
        and any("GradientTape" in ast.unparse(item.context_expr) for item in node.items)
        and _scope_of(module, node.lineno) is scope
    ]
    return max(tapes, default=None)


def _scope_of(module: ast.Module, line: int) -> ast.AST:
    """The innermost function around a line, or the module."""
    around: list[ast.AST] = [
        node
        for node in ast.walk(module)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return around[-1] if around else module  # ast.walk goes from the outside inwards


def loop_over_samples(file: str, line: int) -> Loop | None:
    """The loop around a line that iterates over the first axis of something, by elements or by indices."""
    for loop in enclosing_loops(file, line):
        if not loop.iterated:
            continue
        if _given_names(file, loop) & _plain_names(loop.iterated) or _indexes_first_axis(file, loop):
            return loop
    return None


def _plain_names(expression: str) -> set[str]:
    """Names that are iterated as they are: `x`, `zip(x, y)`, `enumerate(x)`, `tf.unstack(x)`."""
    node = ast.parse(expression, mode="eval").body
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func).rpartition(".")[2]
        if called in ("zip", "enumerate", "unstack", "reversed", "list"):
            return set().union(*(_plain_names(ast.unparse(argument)) for argument in node.args)) if node.args else set()
    return set()


def _given_names(file: str, loop: Loop) -> set[str]:
    """Names of what the loop gets from outside: arguments of the function, variables of outer loops."""
    module = tree(file)
    if module is None:
        return set()
    names: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno < loop.line <= (
            node.end_lineno or 0
        ):
            arguments = node.args
            names.update(a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))
    for outer in enclosing_loops(file, loop.line):
        names.update(outer.variables)
    # `left, right = batch` and `x, y = next(iterator)` pass it on.
    for node in ast.walk(module):
        if isinstance(node, ast.Assign) and node.lineno < loop.line and _passes_on(node.value, names):
            names.update(name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name))
    return names - {"self", "cls"}


def _passes_on(value: ast.expr, names: set[str]) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).rpartition(".")[2] in ("next", "get_next")
    if isinstance(value, ast.Subscript):
        value = value.value
    return isinstance(value, ast.Name) and value.id in names


def _indexes_first_axis(file: str, loop: Loop) -> bool:
    """`for i in range(n)` with `x[i]` in its body, where x comes from outside."""
    module = tree(file)
    if module is None or "range" not in loop.iterated:
        return False
    arguments = _given_names(file, loop)
    for node in ast.walk(module):
        if (
            isinstance(node, ast.Subscript)
            and loop.line < node.lineno <= loop.end
            and isinstance(node.value, ast.Name)
            and node.value.id in arguments
        ):
            index = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
            names = {n.id for n in ast.walk(index) if isinstance(n, ast.Name)}
            if names & set(loop.variables):
                return True
    return False


def numpy_work_on(file: str, found_on: frozenset[int]) -> frozenset[int]:
    """Lines of the same loop that process the results of the given lines with numpy or plain Python.

    Lines that pass a result to other code (an environment, a logger, TensorFlow) are not included: that work does
    not depend on where the value comes from.
    """
    module = tree(file)
    if module is None:
        return frozenset()
    arrays = {"np", "numpy"} | {alias for alias, name in _imported(module) if name.split(".")[0] == "numpy"}
    found: set[int] = set()
    names: set[str] = set()
    loop = innermost_loop(file, min(found_on)) if found_on else None
    if loop is None:
        return frozenset()
    statements = [
        node
        for node in ast.walk(module)
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr))
        and loop.line < node.lineno <= loop.end
    ]
    # Each round follows the values one statement further, also to earlier lines, which run again in the next iteration.
    for _ in statements:
        before = (len(found), len(names))
        for node in statements:
            extent = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            read = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            pulls = any(line in found_on for line in extent)
            if pulls or (read & names and _calls_only(node, arrays, names)):
                names |= _assigned(node)
                if not pulls:
                    found.update(extent)
        if before == (len(found), len(names)):
            break
    return frozenset(found)


def _imported(module: ast.Module) -> list[tuple[str, str]]:
    """(name in the file, imported module) of every import."""
    return [
        (item.asname or item.name.split(".")[0], item.name)
        for node in ast.walk(module)
        if isinstance(node, ast.Import)
        for item in node.names
    ]


def _assigned(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _calls_only(node: ast.AST, modules: set[str], names: set[str]) -> bool:
    """Whether all calls of a statement go to these modules, to builtins, or to methods of values it works on."""
    bound = names | _assigned(node)
    for call in ast.walk(node):
        if not isinstance(call, ast.Call):
            continue
        root: ast.expr = call.func
        while isinstance(root, (ast.Attribute, ast.Call, ast.Subscript)):
            root = root.func if isinstance(root, ast.Call) else root.value
        if isinstance(call.func, ast.Name):
            if not hasattr(builtins, call.func.id):
                return False
        elif isinstance(root, ast.Name) and root.id not in modules | bound:
            return False
    return True


def assignment_line(file: str, attribute: str, before: int) -> int | None:
    """The last line up to `before` that assigns to `….attribute`."""
    module = tree(file)
    if module is None:
        return None
    lines_found = [
        node.lineno
        for node in ast.walk(module)
        if isinstance(node, ast.Assign)
        and node.lineno <= before
        and any(isinstance(target, ast.Attribute) and target.attr == attribute for target in node.targets)
    ]
    return max(lines_found, default=None)
