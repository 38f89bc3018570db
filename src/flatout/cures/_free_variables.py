"""What a function reads from outside: globals, variables of enclosing functions, attributes of its arguments.

A trace contains the Python values that it read. When one of them changes (`self.weight = 0.5`, a global counter), the
trace is out of date. So every call compares `now()` with that of the trace, and a different one is traced again.
Followed are the functions, methods, properties and lambdas of the program that it calls, on whatever object.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from flatout.cures import _loads
from flatout.cures._fingerprint import MISSING, Reader, is_tensor, own
from flatout.cures._tracing import Unfit
from flatout.source import users_code

_MOST = 400
_MOST_FUNCTIONS = 200
_SCALARS = (int, float, bool, complex, str, bytes, type(None))
_CALLED = ("__call__", "call")
_MOST_MET = 64
_DATA = (*_SCALARS, list, tuple, dict)


class Chain(NamedTuple):
    """A value, by the way to it."""

    kind: str
    """Where it starts: "global", "cell", "argument"."""
    holder: Any
    """What holds it there."""
    attributes: tuple[str, ...]
    text: str
    """As a reader would write it, with the line that reads it."""


class FreeVariables:
    def __init__(self, function: FunctionType, args: tuple[Any, ...]) -> None:
        self.chains: dict[tuple[str, Any, tuple[str, ...]], Chain] = {}
        self.reader = Reader()
        self.seen: set[tuple[Any, ...]] = set()
        given = zip(range(len(args)), parameters(function), strict=False)
        arguments = {name: Chain("argument", index, (), name) for index, name in given}
        self.met: dict[int, Any] = {}
        """Objects that are passed on, or iterated: which of their methods run is known by name only."""
        self.lenient = False
        try:
            self._look(function, arguments, args)
            self._look_at_objects(args)
        except Unfit:
            raise
        except Exception as error:  # the program's objects may answer to anything in any way
            raise Unfit(f"what it reads cannot be followed ({type(error).__name__}: {error})") from error

    def now(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The present values: plain ones and what holds them by themselves, other objects by identity."""
        return tuple(self._told(chain, args) for chain in self.chains.values())

    def _told(self, chain: Chain, args: tuple[Any, ...]) -> Any:
        value = _value(chain, args)
        if chain.kind == "argument" and not chain.attributes and (isinstance(value, _DATA) or is_tensor(value)):
            return None  # data: it goes into the graph
        return self.reader.told(value)

    def objects(self, args: tuple[Any, ...]) -> list[Any]:
        """The objects behind the identities. Keep a reference to them: ids are reused once an object is gone."""
        values = (_value(chain, args) for chain in self.chains.values())
        return [value for value in values if not isinstance(value, _SCALARS)]

    def differing(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> str:
        """What has changed between two results of `now`, with the line that reads it; empty for nothing."""
        pairs = zip(self.chains.values(), one, other, strict=False)
        found = [chain for chain, before, after in pairs if before != after]
        return max(found, key=lambda chain: len(chain.attributes)).text if found else ""

    def _look(self, function: FunctionType, arguments: dict[str, Chain], args: tuple[Any, ...]) -> None:
        """`arguments`: the ways to what is known to be given to the function."""
        key = (id(function), *((name, _key(chain)) for name, chain in arguments.items()))
        if key in self.seen:
            return
        self.seen.add(key)
        if len(self.seen) > _MOST_FUNCTIONS:
            raise Unfit(f"it calls more than {_MOST_FUNCTIONS} functions of the program")
        source = _loads.source_of(function.__code__)
        if source is None:
            raise Unfit(f"the source of {function.__qualname__} cannot be read")
        if source.against and not self.lenient:
            raise Unfit(f"in {function.__qualname__}, {source.against}")
        self.reader.names |= source.names
        for load in source.loads:
            start = arguments.get(load.root) or _start(function, load.root)
            if start is not None:
                where = f"{source.file}:{load.line}"
                text = f"`{'.'.join((load.root, *load.attributes))}` ({where})"
                self._follow(Chain(start.kind, start.holder, (*start.attributes, *load.attributes), text), start, args)

    def _follow(self, chain: Chain, start: Chain, args: tuple[Any, ...]) -> None:
        value = _value(start, args)
        kept = list(start.attributes)
        for name in chain.attributes[len(start.attributes) :]:
            inner = own(value, name)
            if inner is MISSING:
                self._look_into_class(value, name, chain._replace(attributes=tuple(kept)), args)
                break
            kept.append(name)
            value = inner
        self._judge(value, args)
        self._meet(value)
        if isinstance(value, (FunctionType, MethodType)):
            function = value.__func__ if isinstance(value, MethodType) else value
            if not isinstance(function, FunctionType) or not users_code.is_users(function.__code__):
                return  # of a library
            self._look(function, {}, args)
        if isinstance(value, (ModuleType, type)) or value is MISSING:
            return
        if len(self.chains) >= _MOST:
            raise Unfit(f"it reads more than {_MOST} values from outside")
        found = chain._replace(attributes=tuple(kept))
        self.chains.setdefault(_key(found), found)

    def _look_at_objects(self, args: tuple[Any, ...]) -> None:
        """Methods with names that are read somewhere. That they have effects says nothing: another one may be meant.
        An object that is called is meant."""
        done: set[tuple[int, str]] = set()
        while True:
            found = [(one, name) for one in self.met.values() for name in (*_CALLED, *self.reader.names)]
            new = [(one, name) for one, name in found if (id(one), name) not in done]
            if not new:
                return
            for one, name in new:
                done.add((id(one), name))
                self.lenient = name not in _CALLED
                self._look_into_class(one, name, Chain("object", _Held(one), (), type(one).__name__), args)

    def _meet(self, value: Any) -> None:
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else (value,)
        for part in list(parts)[:_MOST_MET]:
            if not isinstance(part, (*_DATA, FunctionType, MethodType, ModuleType, type)) and not is_tensor(part):
                self.met.setdefault(id(part), part)

    def _look_into_class(self, value: Any, name: str, at: Chain, args: tuple[Any, ...]) -> None:
        """A method, or a property, of the object that is reached so far."""
        found = next((vars(kind)[name] for kind in type(value).__mro__ if name in vars(kind)), None)
        for function in (getattr(found, "fget", None), getattr(found, "__func__", None), found):
            if isinstance(function, FunctionType) and users_code.is_users(function.__code__):
                names = function.__code__.co_varnames[: min(function.__code__.co_argcount, 1)]
                bound = not isinstance(found, (staticmethod, classmethod))
                self._look(function, dict.fromkeys(names, at) if bound else {}, args)
                return

    def _judge(self, value: Any, args: tuple[Any, ...]) -> None:
        import numpy as np

        if isinstance(value, (random.Random, np.random.Generator, np.random.RandomState)):
            raise Unfit("it draws random numbers in Python")
        if isinstance(value, Iterator) and not hasattr(value, "element_spec"):
            raise Unfit("it takes its data from a Python iterator")
        if isinstance(value, type):
            return  # a class that the function names, `tf.keras.Model` in an annotation, has no layers
        flatten = getattr(value, "_flatten_layers", None)
        for layer in flatten() if callable(flatten) else ():
            call = getattr(type(layer), "call", None)
            if isinstance(call, FunctionType) and users_code.is_users(call.__code__):
                self._look(call, {"self": Chain("object", _Held(layer), (), "self")}, args)


def parameters(function: FunctionType) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def in_order(function: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments by position, those that are given by name among them."""
    if not kwargs:
        return args
    return (*args, *(kwargs.get(name, MISSING) for name in parameters(function)[len(args) :]))


class _Held:
    """An object that is reached through a library: a layer of a model."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _start(function: FunctionType, root: str) -> Chain | None:
    code = function.__code__
    if root in code.co_varnames or root in code.co_cellvars:
        return None
    if root in code.co_freevars:
        cells = function.__closure__ or ()
        return Chain("cell", cells[code.co_freevars.index(root)], (), root)
    if root in function.__globals__:
        return Chain("global", (function.__globals__, root), (), root)
    return None


def _key(chain: Chain) -> tuple[str, Any, tuple[str, ...]]:
    """The same for two chains that lead to the same value."""
    holder = chain.holder
    if isinstance(holder, tuple):
        return (chain.kind, (id(holder[0]), holder[1]), chain.attributes)
    if isinstance(holder, _Held):
        return (chain.kind, id(holder.value), chain.attributes)
    return (chain.kind, holder if isinstance(holder, int) else id(holder), chain.attributes)


def _value(chain: Chain, args: tuple[Any, ...]) -> Any:
    kind, holder, attributes, _ = chain
    value: Any
    if kind == "argument":
        value = args[holder] if holder < len(args) else MISSING
    elif kind == "object":
        value = holder.value
    elif kind == "cell":
        try:
            value = holder.cell_contents
        except ValueError:
            return MISSING
    else:
        value = holder[0].get(holder[1], MISSING)
    for name in attributes:
        value = own(value, name)
    return value
