"""Loops: which of them runs the training steps, and which calls they make in each iteration."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from flatout.source.analysis.datasets import iterated_dataset, value_of
from flatout.source.analysis.scopes import Loop, Scope, Site
from flatout.source.analysis.syntax import called, constant, last_name
from flatout.source.analysis.traced_functions import is_traced

STEP_NAME = re.compile(
    r"^_?(distributed_|dist_|multi_)?(train|training)_?(step|batch|one_step|one_batch|on_batch|iteration)(_fn)?$"
)
_NOT_STEPS = re.compile(r"epoch|fold|trial|experiment|model|repeat|seed|restart|config|hyper", re.IGNORECASE)
UPDATES = frozenset({"apply_gradients", "apply"})


def innermost(site: Site) -> Loop | None:
    return site.loops[-1] if site.loops else None


def is_guarded(site: Site, loop: Loop) -> bool:
    """Whether a site in a loop runs only under a condition, such as every hundredth step."""
    start, end = loop.lineno, loop.end_lineno or loop.lineno
    return any(isinstance(statement, ast.If) and start <= statement.lineno <= end for statement, _ in site.arms)


_SHOWS = re.compile(
    r"\b(plt|pyplot|axs?|axes|fig)\b.*\.(imshow|title|subplot|show|plot|set_title)\(|\bplt\.|\bdisplay\("
)


def shows(node: ast.AST) -> bool:
    """Whether a loop or a function plots for a reader: its speed does not matter."""
    return _SHOWS.search(without_flags(node)) is not None


def without_flags(node: ast.AST) -> str:
    """The text of a node, without what a flag switches on: `if show: cv2.imshow(…)`"""
    lines = [line.strip() for line in ast.unparse(node).splitlines()]
    for inner in ast.walk(node):
        if isinstance(inner, ast.If) and isinstance(inner.test, (ast.Name, ast.Attribute)) and inner is not node:
            for line in "\n".join(ast.unparse(part) for part in inner.body).splitlines():
                if line.strip() in lines:
                    lines.remove(line.strip())
    return "\n".join(lines)


def is_short(loop: Loop, limit: int = 8, site: Site | None = None) -> bool:
    """`for _ in range(3)`, `for name in ("a", "b")`: too short to matter. With a site, variables are resolved."""
    if isinstance(loop, ast.While):
        return False
    source = iterated(loop)
    while isinstance(source, ast.Call) and last_name(source.func) in ("enumerate", "zip", "tqdm") and source.args:
        source = source.args[0]
    if isinstance(source, (ast.Tuple, ast.List, ast.Set)):
        return len(source.elts) <= limit
    if isinstance(source, ast.Name) and site is not None and (bound := value_of(source.id, site)) is not None:
        # An empty list is filled later.
        return isinstance(bound[0], (ast.Tuple, ast.List, ast.Set)) and 0 < len(bound[0].elts) <= limit
    part = None
    if isinstance(source, ast.Call) and last_name(source.func) == "take" and source.args:
        part = source.args[0]  # `dataset.take(1)`
    elif isinstance(source, ast.Subscript) and isinstance(source.slice, ast.Slice):
        part = source.slice.upper  # `images[:4]`, `images[50:60]`
        first = constant(source.slice.lower) if source.slice.lower is not None else 0
        if not isinstance(first, int):
            return False
        limit += first
    if part is not None:
        count = number(part, site) if site is not None else constant(part)
        return isinstance(count, int) and 0 <= count <= limit
    if isinstance(source, ast.Call) and last_name(source.func) == "range" and source.args:
        end = source.args[-1] if len(source.args) < 2 else source.args[1]
        if isinstance(end, ast.Name) and site is not None:
            bound = value_of(end.id, site)
            end = bound[0] if bound is not None else end
        stop = constant(end)
        return isinstance(stop, int) and stop <= limit
    return False


def turns(loop: Loop, site: Site) -> int | None:
    """How often a loop turns, where source tells it; None where it does not."""
    if isinstance(loop, ast.While):
        return None
    source = iterated(loop)
    while isinstance(source, ast.Call) and last_name(source.func) in ("enumerate", "zip", "tqdm") and source.args:
        source = source.args[0]
    if isinstance(source, ast.Name) and (bound := value_of(source.id, site)) is not None:
        source, site = bound  # `epochs = range(20)`
    if isinstance(source, (ast.Tuple, ast.List, ast.Set)):
        return len(source.elts) or None  # an empty one is filled later
    if not isinstance(source, ast.Call) or not source.args:
        return None
    if last_name(source.func) in ("range", "trange", "tqdm_range"):
        end = source.args[1] if len(source.args) > 1 else source.args[0]
        if isinstance(end, ast.BinOp) and isinstance(end.op, ast.Sub):
            end = end.left.left if isinstance(end.left, ast.BinOp) and isinstance(end.left.op, ast.Sub) else end.left
        return number(end, site)  # `range(days - window - 1)`: at most as many
    return number(source.args[0], site) if last_name(source.func) == "take" else None


def number(node: ast.AST, site: Site, hops: int = 4) -> int | None:
    """A whole number, also one that a name was given, or an argument by the only call of its function."""
    if isinstance(node, ast.Name):
        bound = value_of(node.id, site)
        if bound is not None and isinstance(bound[0], ast.Name) and hops:
            return number(*bound, hops - 1)
        node = bound[0] if bound is not None else _default(node, site)
    value = constant(node)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _default(name: ast.Name, site: Site) -> ast.expr:
    """What an argument is where a call does not give it."""
    given = getattr(site.scope.node, "args", None)
    if isinstance(given, ast.arguments):
        named = [item.arg for item in (*given.posonlyargs, *given.args)]
        defaults = dict(zip(reversed(named), reversed(given.defaults), strict=False))
        return defaults.get(name.id, name)
    return name


def all_turns(site: Site) -> int | None:
    """How often the code at a site runs in all, by the loops around it; None where one of them is not known."""
    total = 1
    for loop in site.loops:
        known = turns(loop, site)
        if known is None:
            return None
        total *= known
    return total


def all_calls(scope: Scope, depth: int = 0) -> int | None:
    """How often a run calls a function in all, by its calls in this file and the loops around them; None if unknown."""
    if isinstance(scope.node, ast.Lambda) or depth > 3:
        return None
    total = seen = others = 0
    for call, site in scope.module.calls_by_name.get(scope.name, ()):
        meant = scope.module.function_of(call.func, site)
        if site.scope is scope or (meant is None and not _same_method(call, site, scope)):
            return None
        if meant is not None and meant is not scope:
            others += 1  # another definition of the same name, and its call
            continue
        known = all_turns(site)
        outer = next((around for around in site.scope.around() if around.is_function), None)
        times = all_calls(outer, depth + 1) if outer is not None else 1
        if known is None or times is None:
            return None
        total += known * times
        seen += 1
    # Named elsewhere, it is handed on, or called by another name.
    first, last = scope.node.lineno, _defined_again(scope)  # type: ignore[attr-defined]
    if last is None:
        return total if seen and _times_named(scope, 0, 1 << 60) <= seen + others else None
    return total if seen and _times_named(scope, first, last) <= seen else None


def _defined_again(scope: Scope) -> int | None:
    """The line from which the name of a function means another one."""
    siblings = scope.parent.children if scope.parent is not None else []
    lines = [other.node.lineno for other in siblings if other.name == scope.name and other.is_function]  # type: ignore[attr-defined]
    return min((line for line in lines if line > scope.node.lineno), default=None)  # type: ignore[attr-defined]


def _times_named(scope: Scope, first: int, last: int) -> int:
    """How often lines name a function, to call it or to hand it on."""
    named: dict[object, list[int]] | None = scope.module.__dict__.get("_named")
    if named is None:
        named = scope.module.__dict__["_named"] = {}
        for node in ast.walk(scope.module.tree):
            if isinstance(node, ast.Name):
                named.setdefault(node.id, []).append(node.lineno)
            elif isinstance(node, ast.Attribute):
                named.setdefault(node.attr, []).append(node.lineno)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                named.setdefault(node.value, []).append(node.lineno)
    hidden = [other.extent() for other in scope.module.scopes if scope.name in other.arguments]
    return sum(
        first <= line < last and not any(begin <= line <= end for begin, end in hidden)  # an argument of the same name
        for line in named.get(scope.name, ())
    )


def breaks_after(loop: Loop, site: Site) -> float:
    """`if step > 50: break` in a loop: 50; infinity where nothing such ends it."""
    limits = [
        number(test.comparators[0], site)
        for part in getattr(loop, "body", ())
        if isinstance(part, ast.If)
        and isinstance(part.body[-1], ast.Break)
        and isinstance(test := part.test, ast.Compare)
        and isinstance(test.ops[0], (ast.Gt, ast.GtE, ast.Eq))
        and isinstance(test.left, ast.Name)
        and re.search(r"step|iter|count|^i$|batch|idx|index", test.left.id, re.IGNORECASE)
    ]
    return min((limit for limit in limits if limit is not None), default=float("inf"))


def iterated(loop: Loop) -> ast.expr | None:
    if isinstance(loop, ast.While):
        return None
    return loop.iter if isinstance(loop, (ast.For, ast.AsyncFor)) else loop.generators[0].iter


def target_names(loop: Loop) -> set[str]:
    if isinstance(loop, ast.While):
        return set()
    targets = [loop.target] if isinstance(loop, (ast.For, ast.AsyncFor)) else [part.target for part in loop.generators]
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def names_epochs(loop: Loop) -> bool:
    """Whether a loop counts epochs, folds or trials: few long iterations."""
    source = iterated(loop)
    words = target_names(loop)
    if source is not None:
        words = words | {last_name(node) for node in ast.walk(source)}
    return any(_NOT_STEPS.search(word) for word in words)


def calls_in(loop: Loop, scope: Scope) -> list[tuple[ast.Call, Site]]:
    """Calls in a loop, including those in nested loops."""
    return scope.module.once(_calls_by_loop, scope).get(loop, [])


def direct_calls(loop: Loop, scope: Scope) -> list[tuple[ast.Call, Site]]:
    """Calls in each iteration of a loop, without those of nested loops."""
    return scope.module.once(_calls_by_innermost_loop, scope).get(loop, [])


def _calls_by_loop(scope: Scope) -> dict[Loop, list[tuple[ast.Call, Site]]]:
    found: dict[Loop, list[tuple[ast.Call, Site]]] = {}
    for call, site in scope.facts.calls:
        for loop in site.loops:
            found.setdefault(loop, []).append((call, site))
    return found


def _calls_by_innermost_loop(scope: Scope) -> dict[Loop, list[tuple[ast.Call, Site]]]:
    found: dict[Loop, list[tuple[ast.Call, Site]]] = {}
    for call, site in scope.facts.calls:
        if site.loops:
            found.setdefault(site.loops[-1], []).append((call, site))
    return found


def makes_step(call: ast.Call, site: Site, depth: int = 0) -> bool:
    """Whether a call is a training step: an update of an optimizer, or a function that makes one."""
    name = called(call)
    if name in UPDATES and of_optimizer(call):
        return True
    if name == "assign_sub" and any(_is_tape(other) for other, _ in site.scope.facts.calls):
        return True
    if name == "train_on_batch" or STEP_NAME.match(name):
        return True
    if depth >= 3:
        return False
    found = site.module.function_of(call.func, site)
    if found is None:
        # `strategy.run(step, …)`
        if name in ("run", "experimental_run_v2") and call.args:
            found = site.module.function_of(call.args[0], site)
        if found is None:
            return _all_make_steps(call, site, depth)
    return any(makes_step(inner, where, depth + 1) for inner, where in found.facts.calls if not where.loops)


def _all_make_steps(call: ast.Call, site: Site, depth: int) -> bool:
    """`self.generator.step(batch)`, where every class of this file that has such a method makes a step in it."""
    if not isinstance(call.func, ast.Attribute):
        return False
    methods = [scope for scope in site.module.functions.get(call.func.attr, ()) if scope.owner is not None]
    return bool(methods) and all(
        any(makes_step(inner, where, depth + 1) for inner, where in scope.facts.calls if not where.loops)
        for scope in methods
    )


def _is_tape(call: ast.Call) -> bool:
    return called(call) == "GradientTape"


def of_optimizer(call: ast.Call) -> bool:
    if called(call) == "apply_gradients":
        return True
    return isinstance(call.func, ast.Attribute) and "opt" in last_name(call.func.value).lower()


def is_step_loop(loop: Loop, scope: Scope) -> bool:
    """Whether each iteration of a loop is one training step."""
    if names_epochs(loop) and any(inner is not loop and loop in site.loops for inner, site in _loops(scope)):
        return False
    return any(makes_step(call, site) for call, site in direct_calls(loop, scope))


def _loops(scope: Scope) -> list[tuple[Loop, Site]]:
    return [(loop, site) for loop, site in scope.facts.loops if not isinstance(loop, (ast.ListComp, ast.GeneratorExp))]


def over_data(loop: Loop, site: Site) -> bool:
    """Whether a loop iterates over a dataset."""
    source = iterated(loop)
    return source is not None and iterated_dataset(source, site) is not None


def called_in_loop(scope: Scope, depth: int = 0, matters: Callable[[Loop, Site], bool] | None = None) -> bool:
    """Whether the file calls a function from a loop (that `matters`), directly or through another function."""
    if isinstance(scope.node, ast.Lambda) or depth > 3:
        return False
    for call, site in scope.module.calls_by_name.get(scope.name, ()):
        if scope.module.function_of(call.func, site) is not scope and not _same_method(call, site, scope):
            continue
        if any(not is_short(loop, 8, site) and (matters is None or matters(loop, site)) for loop in site.loops):
            return True
        if site.scope is not scope and site.scope.is_function and called_in_loop(site.scope, depth + 1, matters):
            return True
    return False


def _same_method(call: ast.Call, site: Site, scope: Scope) -> bool:
    """`agent.update(...)`, where one class of this file alone has an `update`."""
    if not isinstance(call.func, ast.Attribute) or scope.owner is None:
        return False
    if isinstance(call.func.value, ast.Attribute) and scope.owner in site.scope.around():
        return False  # `self.model.predict(x)` in the class that has a `predict`: the method of something else
    return len(scope.module.functions.get(scope.name, ())) == 1


def eager_loop(site: Site) -> Loop | None:
    """The innermost loop around a site that Python itself runs; None in a traced function."""
    if not site.loops or is_traced(site):
        return None
    return site.loops[-1]
