"""What a function reads from outside: globals, variables of enclosing functions, attributes of its arguments.

A trace contains the Python values that it read. When one of them changes (`self.weight = 0.5`, a global counter), the
trace is out of date. So every call compares `now()` with that of the trace, and a different one is traced again.
"""

from __future__ import annotations

import ast
import functools
import random
from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

from flatout.cures._tracing import Unfit
from flatout.source import side_effects, users_code

Chain = tuple[str, Any, tuple[str, ...]]
"""Where it starts ("global", "cell" or "argument"), what holds it there, and the attributes that follow."""

_PLAIN = (int, float, bool, str, bytes, complex, type(None))
_MISSING = object()
_MOST = 60


class FreeVariables:
    def __init__(self, function: FunctionType, args: tuple[Any, ...]) -> None:
        self.chains: dict[tuple[str, Any, tuple[str, ...]], Chain] = {}
        self.seen: set[int] = set()
        self._look(function, args)

    def now(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The present values: plain ones themselves, other objects by identity."""
        return tuple(_told(_value(chain, args)) for chain in self.chains.values())

    def objects(self, args: tuple[Any, ...]) -> list[Any]:
        """The objects behind the identities. Keep a reference to them: ids are reused once an object is gone."""
        return [_value(chain, args) for chain in self.chains.values()]

    def _look(self, function: FunctionType, args: tuple[Any, ...]) -> None:
        """`args` are those of the traced function itself, or of a method of the same object."""
        if id(function) in self.seen or len(self.seen) > 40:
            return
        self.seen.add(id(function))
        location = users_code.absolute(function.__code__.co_filename), function.__code__.co_firstlineno
        if side_effects.definition_at(*location) is None:
            raise Unfit(f"the source of {function.__qualname__} cannot be read")
        against = side_effects.reason_against(*location)
        if against:
            raise Unfit(f"in {function.__qualname__}, {against}")
        for root, attributes in _loads_at(*location):
            chain = _start(function, root, attributes, bool(args))
            if chain is None:
                continue
            self._follow(chain, args)

    def _follow(self, chain: Chain, args: tuple[Any, ...]) -> None:
        kind, holder, attributes = chain
        value: Any = _value((kind, holder, ()), args)
        kept: list[str] = []
        for name in attributes:
            inner = _own(value, name)
            if inner is _MISSING:
                method = getattr(type(value), name, None)
                if isinstance(method, FunctionType) and users_code.is_users(method.__code__):
                    self._look(method, args if kind == "argument" and holder == 0 and not kept else ())
                break
            kept.append(name)
            value = inner
        self._judge(value)
        if isinstance(value, MethodType):
            value = value.__func__
        if isinstance(value, FunctionType) and value.__name__ != "<lambda>":
            if users_code.is_users(value.__code__):
                self._look(value, ())
        elif not isinstance(value, (ModuleType, type)) and value is not _MISSING and len(self.chains) < _MOST:
            self.chains[(kind, _identity(holder), tuple(kept))] = (kind, holder, tuple(kept))

    def _judge(self, value: Any) -> None:
        import numpy as np

        if isinstance(value, (random.Random, np.random.Generator, np.random.RandomState)):
            raise Unfit("it draws random numbers in Python")
        if isinstance(value, Iterator) and not hasattr(value, "element_spec"):
            raise Unfit("it takes its data from a Python iterator")
        flatten = getattr(value, "_flatten_layers", None)
        for layer in flatten() if callable(flatten) else ():
            call = getattr(type(layer), "call", None)
            if isinstance(call, FunctionType) and users_code.is_users(call.__code__):
                self._look(call, ())


@functools.lru_cache(maxsize=1024)
def _loads_at(file: str, line: int) -> tuple[tuple[str, tuple[str, ...]], ...]:
    node = side_effects.definition_at(file, line)
    return tuple(_loads(node)) if node is not None else ()


def _loads(function: side_effects.Definition) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Names that are read, with the attributes taken from them: `self.optimizer.rate` → ("self", ("optimizer", …))."""
    inner = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            names = [node.attr]
            value: ast.expr = node.value
            while isinstance(value, ast.Attribute):
                inner.add(id(value))
                names.append(value.attr)
                value = value.value
            if isinstance(value, ast.Name) and id(node) not in inner:
                inner.add(id(value))
                yield value.id, tuple(reversed(names))
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in inner:
            yield node.id, ()


def _start(function: FunctionType, root: str, attributes: tuple[str, ...], with_arguments: bool) -> Chain | None:
    code = function.__code__
    if root in code.co_varnames[: code.co_argcount]:
        index = code.co_varnames.index(root)
        return ("argument", index, attributes) if with_arguments and attributes else None
    if root in code.co_varnames or root in code.co_cellvars:
        return None
    if root in code.co_freevars:
        cells = function.__closure__ or ()
        return ("cell", cells[code.co_freevars.index(root)], attributes)
    if root in function.__globals__:
        return ("global", (function.__globals__, root), attributes)
    return None


def _identity(holder: Any) -> Any:
    """A key for an argument's index, a cell, or a name among the globals of a module."""
    if isinstance(holder, tuple):
        return (id(holder[0]), holder[1])
    return holder if isinstance(holder, int) else id(holder)


def _value(chain: Chain, args: tuple[Any, ...]) -> Any:
    kind, holder, attributes = chain
    value: Any
    if kind == "argument":
        value = args[holder] if holder < len(args) else _MISSING
    elif kind == "cell":
        try:
            value = holder.cell_contents
        except ValueError:
            return _MISSING
    else:
        value = holder[0].get(holder[1], _MISSING)
    for name in attributes:
        value = _own(value, name)
    return value


def _own(value: Any, name: str) -> Any:
    """An attribute that is simply kept there. A property is computed: its value now says nothing."""
    kept = getattr(value, "__dict__", None)
    return kept.get(name, _MISSING) if isinstance(kept, dict) else _MISSING


def _told(value: Any) -> Any:
    if isinstance(value, _PLAIN):
        return (type(value), value)
    if type(value) not in (list, tuple, set, dict) or len(value) > 32:
        return id(value)
    parts = value.values() if isinstance(value, dict) else value
    return (id(value), repr(value)) if all(isinstance(part, _PLAIN) for part in parts) else id(value)
