"""Side effects of a function, read from its source: what would happen only once if the function were traced.

Tracing runs the Python of a function once and records its TensorFlow operations. A print, an append to a list, an
attribute that is set, a random number of NumPy would then happen in the first call only. A function with any of these
is not changed.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping, Sequence

from flatout.source import context

Definition = ast.FunctionDef | ast.AsyncFunctionDef

_PRINTS = {"print", "input", "open", "display"}
_GROWS = {
    *("append", "extend", "insert", "appendleft", "pop", "popleft", "remove", "discard", "setdefault", "update"),
    *("fill", "sort", "clear", "popitem", "itemset"),
    *("write", "writelines", "writerow", "set_description", "set_postfix", "set_postfix_str", "put", "put_nowait"),
    *("info", "debug", "warning", "error", "critical"),
}
_FILLS = ("numpy.copyto", "numpy.put", "numpy.place", "numpy.putmask", "numpy.fill_diagonal")
"""Functions that fill the array that they are given first."""
_READS = (
    *("os.path.", "os.listdir", "os.scandir", "os.fspath", "os.sep", "time.sleep", "csv.reader", "csv.DictReader"),
    *("json.load", "pickle.load"),
)
"""Names under `_OUTSIDE` that only read, or wait."""
_OUTSIDE = {
    *("logging", "random", "time", "datetime", "wandb", "mlflow", "os", "sys", "csv", "json", "pickle", "tqdm", "gc"),
    *("matplotlib", "seaborn", "neptune", "comet_ml", "clearml", "shutil", "subprocess", "requests"),
}


@functools.lru_cache(maxsize=1024)
def definition_at(file: str, line: int) -> Definition | None:
    """The function whose `def` or first decorator is on this line."""
    module = context.tree(file)
    for node in ast.walk(module) if module is not None else ():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and line in (node.lineno, first_line(node)):
            return node
    return None


def first_line(node: Definition) -> int:
    """The first line including decorators, as `co_firstlineno`."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


@functools.lru_cache(maxsize=1024)
def reason_against(file: str, line: int) -> str | None:
    """Why the function on this line must not be traced, or None if it may be."""
    node = definition_at(file, line)
    if node is None:
        return "its source cannot be read"
    if isinstance(node, ast.AsyncFunctionDef):
        return "it is asynchronous"
    return reason_against_block(node.body, imported(context.tree(file)))


def reason_against_block(
    body: Sequence[ast.stmt], modules: Mapping[str, str], fresh: frozenset[str] = frozenset(), *, kept: bool = False
) -> str | None:
    """The same for some statements. `modules` are the names that the file has `imported`.

    `fresh`: names of objects that statements before them, which are traced as well, have made. `kept`: they are not
    traced, but their result is kept: reading a file once is then the point, and exceptions are raised as before.
    """
    return next(_effects(body, modules, fresh, kept), None)


def _effects(body: Sequence[ast.stmt], modules: Mapping[str, str], fresh: frozenset[str], kept: bool) -> Iterator[str]:
    own = made_here(body) | fresh
    for node in (inner for statement in body for inner in ast.walk(statement)):
        line = getattr(node, "lineno", body[0].lineno)
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            yield f"line {line} sets {', '.join(node.names)} outside of it"
        elif isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)):
            yield "it is a generator or a coroutine"
        elif isinstance(node, ast.Try) and node.handlers and not kept:
            yield f"line {line} catches exceptions, which a graph does not raise there"
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            if root(node) not in own:
                yield f"line {line} sets {ast.unparse(node)}"
        elif isinstance(node, ast.Call):
            effect = _call(node, own, modules)
            if effect and not (kept and _reads(node, modules)):
                yield f"line {line} {effect}"


def _reads(node: ast.Call, modules: Mapping[str, str]) -> bool:
    """Whether a call with an effect only reads something, or waits."""
    text = ast.unparse(node.func)
    if text == "open":
        modes = [*node.args[1:2], *(one.value for one in node.keywords if one.arg == "mode")]
        return all(isinstance(mode, ast.Constant) and mode.value in ("r", "rb", "rt") for mode in modes)
    first = root(node.func)
    return f"{modules.get(first, first)}{text[len(first) :]}".startswith(_READS)


def _call(node: ast.Call, own: set[str], modules: Mapping[str, str]) -> str:
    called = node.func
    filled = _filled(node, modules)
    if filled is not None and root(filled) not in own:
        return f"fills {ast.unparse(filled)}"
    if isinstance(called, ast.Name):
        if called.id in _PRINTS:
            return f"calls {called.id}"
        came_from = modules.get(called.id, "")
        return f"calls {came_from}" if came_from.split(".")[0] in _OUTSIDE else ""
    if not isinstance(called, ast.Attribute):
        return ""
    first = root(called)
    text = ast.unparse(called)
    if first in modules:
        full = modules[first] + text[len(first) :]
        outside = full.split(".")[0] in _OUTSIDE or full.startswith("numpy.random")
        return f"calls {text}" if outside else ""
    return f"calls {text}" if called.attr in _GROWS and first not in own else ""


def _filled(node: ast.Call, modules: Mapping[str, str]) -> ast.expr | None:
    """The array that a call writes its result into: `np.copyto(rows, …)`, `np.add(a, b, out=rows)`."""
    first = root(node.func)
    full = f"{modules.get(first, first)}{ast.unparse(node.func)[len(first) :]}"
    if full in _FILLS and node.args:
        return node.args[0]
    if not full.startswith("numpy."):
        return None
    return next((item.value for item in node.keywords if item.arg == "out"), None)


def root(node: ast.expr) -> str:
    """`a` of `a.b[c](d)`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def made_here(body: Sequence[ast.stmt]) -> set[str]:
    """Names bound to a new object here: filling a list that was made here is no side effect."""
    fresh = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.Call)
    found: set[str] = set()
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            parts, values = [target], [node.value]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):  # `losses, norms = [], []`
                parts, values = target.elts, node.value.elts
            pairs = zip(parts, values, strict=False)
            found.update(part.id for part, value in pairs if isinstance(part, ast.Name) and isinstance(value, fresh))
    return found


def imported(module: ast.Module | None) -> dict[str, str]:
    """Names of imported modules and of what is imported from them, with their full names."""
    found = {}
    for node in ast.walk(module) if module is not None else ():
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found
