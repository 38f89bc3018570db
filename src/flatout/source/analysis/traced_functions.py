"""Which functions of a file run as graphs: decorated, wrapped, traced by Keras, or called from such a function."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from flatout.source.analysis.scopes import Module, Scope, Site
from flatout.source.analysis.syntax import keyword, last_name

BY_KERAS = frozenset(
    [
        "call",
        "train_step",
        "test_step",
        "predict_step",
        "compute_loss",
        "compute_metrics",
        "compute_output_shape",
        "build",
        "update_state",
        "result",
        "get_config",
        "adapt",
        "stateless_call",
        "compute_mask",
    ]
)
"""Methods that Keras calls inside its own tf.functions."""
TRACING_CALLS = frozenset(
    [
        "map",
        "flat_map",
        "interleave",
        "filter",
        "apply",
        "scan",
        "reduce",
        "group_by_window",
        "while_loop",
        "cond",
        "map_fn",
        "foldl",
        "foldr",
        "vectorized_map",
        "switch_case",
        "case",
        "custom_gradient",
        "recompute_grad",
        "make_template",
        "wrap_function",
        "jit",
    ]
)
"""Functions and methods that run the functions they are given as graphs."""
_LIKE_FUNCTION = re.compile(
    r"^(function|defun|jit|jit_compile|function_in_tf1|to_graph)$|tf_?function|maybe_(jit|graph|function)|autograph|xla",
    re.IGNORECASE,
)
MAKERS = ("tensorflow.function", "tensorflow.contrib.eager.defun", "tensorflow.contrib.eager.function")


@lru_cache(4096)
def _is_like_function(name: str) -> bool:
    return _LIKE_FUNCTION.search(name) is not None


def makes_function(node: ast.AST, module: Module) -> bool:
    """`tf.function`, `tf.function(jit_compile=True)`, or something from another file with a similar name."""
    inner = node.func if isinstance(node, ast.Call) else node
    alike = _is_like_function(last_name(inner))
    if not alike and type(inner) is ast.Attribute and inner.attr != "partial":
        return False
    dotted = module.names.dotted(inner)
    if dotted in MAKERS or dotted.endswith(".def_function.function"):
        return True
    if dotted == "functools.partial" and isinstance(node, ast.Call) and node.args:
        return makes_function(node.args[0], module)
    # `function_in_tf1()`, `@self.maybe_tf_function`: names that suggest the same
    return alike and not dotted.startswith(("numpy", "numba", "torch", "jax"))


def is_tf_function(node: ast.AST, module: Module) -> bool:
    """`tf.function` or `tf.function(...)` itself, and nothing else."""
    return module.names.dotted(node.func if isinstance(node, ast.Call) else node) == "tensorflow.function"


class Traced:
    """The traced functions of one module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.made: set[Scope] = set()
        """Functions that are tf.functions themselves."""
        self.scopes: set[Scope] = set()
        self.wrapped: set[str] = set()
        """Names of functions that this file wraps and that may be defined in another one."""
        self.called: set[str] = set()
        """Names of functions that traced functions call and that may be defined in another file."""
        self.graph_mode = False
        self._find()

    def __contains__(self, scope: Scope) -> bool:
        return scope in self.scopes

    def _find(self) -> None:
        seeds: set[Scope] = set()
        for scope in self.module.everything():
            if scope.owner is not None and scope.name in BY_KERAS and _may_be_keras(scope.owner):
                seeds.add(scope)
            if any(makes_function(decorator, self.module) for decorator in scope.decorators):
                self.made.add(scope)
            if any(last_name(d.func if isinstance(d, ast.Call) else d) in TRACING_CALLS for d in scope.decorators):
                seeds.add(scope)
            for call, site in scope.facts.calls:
                self._look(call, site, seeds)
        waiting = [*seeds, *self.made]
        while waiting:
            scope = waiting.pop()
            if scope in self.scopes:
                continue
            self.scopes.add(scope)
            waiting.extend(child for child in scope.children if child.is_function)
            waiting.extend(self._reached(scope))

    def _look(self, call: ast.Call, site: Site, seeds: set[Scope]) -> None:
        name = last_name(call.func)
        if name in ("disable_eager_execution", "disable_v2_behavior"):
            self.graph_mode = True
        given = [*call.args, *(item.value for item in call.keywords if item.arg in ("func", "fn", "body", "call_fn"))]
        wraps = makes_function(call, self.module) or (
            isinstance(call.func, ast.Call) and makes_function(call.func, self.module)
        )
        if wraps:
            for item in given:
                inner = item.args[0] if isinstance(item, ast.Call) and last_name(item.func) == "partial" else item
                found = self.module.function_of(item, site)
                if last_name(inner) and not _is_here(found):
                    self.wrapped.add(last_name(inner))
                if found is not None:
                    self.made.add(found)
        elif name in TRACING_CALLS:
            for item in given:
                found = self.module.function_of(item, site)
                if found is not None:
                    seeds.add(found)

    def _reached(self, scope: Scope) -> Iterator[Scope]:
        for call, site in scope.facts.calls:
            name = last_name(call.func)
            if name in ("numpy_function", "py_function"):
                continue  # leaves the graph
            if name and not _is_here(self.module.function_of(call.func, site)):
                self.called.add(name)
            for item in (call.func, *call.args, *(k.value for k in call.keywords)):
                if isinstance(item, (ast.Name, ast.Attribute, ast.Lambda)):
                    found = self.module.function_of(item, site)
                    if found is not None:
                        yield found
                    elif item is call.func and (made := self._instance(item, site)) is not None:
                        yield made
                    elif isinstance(item, ast.Attribute):
                        self.called.add(item.attr)
                        # A method of another object: any class of this file that has it may be meant.
                        others = [s for s in self.module.functions.get(item.attr, ()) if s.owner is not None]
                        if item is call.func and len(others) <= 3:
                            yield from others

    def _instance(self, item: ast.AST, site: Site) -> Scope | None:
        """The method that `network(x)` runs, if the object is an instance of a class of this file."""
        from flatout.source.analysis.datasets import attribute_binding, binding

        bound = None
        if isinstance(item, ast.Name):
            bound = binding(item.id, site)
        elif isinstance(item, ast.Attribute) and isinstance(item.value, ast.Name) and item.value.id == "self":
            bound = attribute_binding(item.attr, site)
        made = bound.value if bound is not None else None
        if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Name):
            return None
        owner = self.module.classes.get(made.func.id)
        return (owner.method("__call__") or owner.method("call")) if owner is not None else None


def _is_here(found: Scope | None) -> bool:
    """Whether a name means a function of this file and no other: a method may be that of a class in another file."""
    return found is not None and found.owner is None


def _may_be_keras(owner: Scope) -> bool:
    """Whether a class has a base that may be a Keras class."""
    bases = getattr(owner.node, "bases", [])
    return any(last_name(base) not in ("object", "ABC", "TestCase", "NamedTuple", "Enum") for base in bases)


def traced(module: Module) -> Traced:
    found = module.__dict__.get("_traced")
    if found is None:
        found = module.__dict__["_traced"] = Traced(module)
    assert isinstance(found, Traced)
    return found


def is_traced(site: Site) -> bool:
    """Whether the code at this site runs while tracing, and not in each step."""
    known = traced(site.module)
    return known.graph_mode or any(scope in known for scope in site.scope.around())


def has_signature(scope: Scope, module: Module) -> bool:
    """Whether its tf.function declares an input signature, which converts Python numbers to tensors."""
    return any(
        isinstance(decorator, ast.Call)
        and makes_function(decorator, module)
        and (keyword(decorator, "input_signature") is not None or len(decorator.args) > 1)
        for decorator in scope.decorators
    )
