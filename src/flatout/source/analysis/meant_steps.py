"""Training steps that run eagerly on purpose, or to be looked at: chosen by a mode, shown before the traced one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from flatout.source.analysis import loops
from flatout.source.analysis.scopes import FUNCTIONS, Module, Scope, Site
from flatout.source.analysis.small_data import KNOWN
from flatout.source.analysis.syntax import constant, last_name
from flatout.source.analysis.traced_functions import traced


def is_meant(site: Site, line: int) -> bool:
    """Whether file or function are named for it, or a comment or the docstring says that tf.function did not work."""
    if re.search(r"eager[^/\\]*$", site.module.path, re.IGNORECASE) or "eager" in site.scope.name.lower():
        return True
    if _is_eager_mode(site):
        return True
    told = ast.get_docstring(site.scope.node) if isinstance(site.scope.node, FUNCTIONS) else None
    if told is not None and "tf.function" in told:
        return True
    above = site.module.source_line(line - 1)
    return "tf.function" in above and re.search(r"work|error|issue|bug|slow|fail", above, re.IGNORECASE) is not None


def _is_eager_mode(site: Site) -> bool:
    """Whether a condition that names the eager mode chooses the loop, and another arm of it trains with `fit`."""
    scope = next((around for around in site.scope.around() if isinstance(around.node, FUNCTIONS)), None)
    places = [site]
    if scope is not None:
        places += [where for _, where in site.module.calls_by_name.get(scope.name, ())]
    return any(
        isinstance(statement, ast.If)
        and _asks_for_eager(statement, arm, where)
        and _fits_otherwise(statement, arm, where)
        for where in places
        for statement, arm in where.arms
    )


def _asks_for_eager(chosen: ast.If, arm: int, site: Site) -> bool:
    """Whether the test of an arm has the word, as in `if mode == "eager":`, and no default of the file."""
    for _ in range(arm):
        if len(chosen.orelse) != 1 or not isinstance(chosen.orelse[0], ast.If):
            return False
        chosen = chosen.orelse[0]
    if "eager" not in ast.unparse(chosen.test).lower():
        return False
    words = {node.value for node in ast.walk(chosen.test) if isinstance(node, ast.Constant)}
    return not any(constant(value) in words for value in _defaults(site.module))


def _defaults(module: Module) -> Iterator[ast.expr]:
    """What options and variables are by default: `DEFINE_enum("mode", "eager", …)`, `mode = "eager"`."""
    for scope in module.everything():
        for call, _ in scope.facts.calls:
            if last_name(call.func).startswith("DEFINE_"):
                yield from call.args[1:2]
            yield from (item.value for item in call.keywords if item.arg == "default")
        yield from getattr(getattr(scope.node, "args", None), "defaults", ())
        for binds in scope.facts.binds.values():
            yield from (bind.value for bind in binds if isinstance(bind.value, ast.Constant))


def _fits_otherwise(chosen: ast.If, arm: int, site: Site) -> bool:
    for call, where in site.scope.facts.calls:
        if (chosen, arm) in where.arms or not any(statement is chosen for statement, _ in where.arms):
            continue
        made = site.module.function_of(call.func, where)
        inner = [last_name(item.func) for item, _ in made.facts.calls] if made is not None else []
        if "fit" in (last_name(call.func), *inner):
            return True
    return False


def is_traced_as_well(tape: ast.With, site: Site) -> bool:
    """Whether a later tf.function of the file has the very same tape: the step was shown eagerly first."""
    shown = ast.dump(tape)
    return any(
        isinstance(item, ast.With) and item.lineno > tape.lineno and ast.dump(item) == shown
        for scope in traced(site.module).made
        for item in ast.walk(scope.node)
    )


def is_fragment(site: Site) -> bool:
    """Whether a loop of a notebook goes through data that no cell makes: it is shown, and cannot run."""
    if not site.module.path.endswith(".ipynb"):
        return False
    source = loops.iterated(site.loops[-1]) if site.loops and not site.scope.is_function else None
    if not isinstance(source, ast.Name) or site.raw(source) or not site.module.names.only_of(KNOWN):
        return False
    return all(source.id not in scope.facts.binds for scope in site.scope.around())


def is_debugged(site: Site) -> bool:
    """Whether the step stops for a debugger in each turn."""
    return any(last_name(call.func) in ("set_trace", "breakpoint") for call, _ in site.scope.facts.calls)


def predicts(scope: Scope) -> bool:
    """Whether the step calls `predict`, which costs more than all its operations and is reported by itself."""
    return any(
        isinstance(call.func, ast.Attribute) and call.func.attr == "predict" and "model" in ast.unparse(call.func)
        for call, _ in scope.facts.calls
    )
