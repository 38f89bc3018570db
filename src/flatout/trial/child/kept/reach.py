"""What the code of a cell can come to: values of the notebook and of the user's modules, and what functions hold.

A cell may change any of these, as `history.append(x)` does. Their digests before and after tell; in a trial they tell
whether the cell begins with what it began with when it ran. Code is followed by the names in it, through functions and
classes of the user; library code has no way to the notebook's names.
"""

from __future__ import annotations

import functools
import inspect
import pickle
import sys
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from types import CellType, CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

from flatout.model.errors import Internal
from flatout.source import users_code
from flatout.trial.child.kept.plain import is_array
from flatout.trial.child.kept.state import is_tensorflows, is_users_module

_SLOTS = (GetSetDescriptorType, MemberDescriptorType)
UNKNOWN = ""
"""In place of the digest of a value that cannot be looked into."""


def reached(names: set[str], attributes: set[str], namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The values that code with these names may come to, by a name for people."""
    names, attributes = set(names), set(attributes)
    modules: dict[str, ModuleType] = {}
    found: dict[str, Any] = {}
    size = -1
    while size != (size := len(found)):
        for word in names & namespace.keys():
            if not word.startswith("__"):
                found.setdefault(word, namespace[word])
        for name, module in list(modules.items()):
            for word in (names | attributes) & vars(module).keys():
                if not word.startswith("__"):
                    found.setdefault(f"{name}.{word}", vars(module)[word])
        for value in list(found.values()):
            if isinstance(value, ModuleType) and is_users_module(value):
                modules[value.__name__] = value
            for function in _functions(value):
                words = set(_words(function.__code__))
                names, attributes = names | words, attributes | words
    return found


def digests(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: digest(value) for name, value in values.items()}


def digest(value: Any) -> str:
    """The same as long as nothing in the value was changed."""
    sink = _Sink()
    try:
        _Digest(sink).dump(value)
    except Exception:  # of the pickling of any class
        return UNKNOWN
    return sink.hash.hexdigest()


def is_users(value: object) -> bool:
    """Whether it is a function or a class of the user's."""
    if isinstance(value, type):
        module = sys.modules.get(value.__module__)
        return value.__module__ == "__main__" or (isinstance(module, ModuleType) and is_users_module(module))
    return _is_users_function(value)


# ── code ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _functions(value: Any) -> Iterator[FunctionType]:
    """Functions of the user that calling or using the value may run."""
    waiting, seen = [value], set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, FunctionType):
            if _is_users_function(one):
                yield one
            waiting += [cell.cell_contents for cell in one.__closure__ or () if _is_filled(cell)]
        elif isinstance(one, type):
            waiting += [part for base in one.__mro__ if is_users(base) for part in vars(base).values()]
        elif isinstance(one, (staticmethod, classmethod)):
            waiting.append(one.__func__)
        elif isinstance(one, property):
            waiting += [one.fget, one.fset]
        elif isinstance(one, functools.partial):
            waiting += [one.func, *one.args, *one.keywords.values()]
        elif isinstance(one, MethodType):
            waiting += [one.__func__, type(one.__self__)]
        elif not isinstance(one, ModuleType):
            waiting += [inspect.getattr_static(one, "__wrapped__", None), *([type(one)] if is_users(type(one)) else [])]


def _is_users_function(value: object) -> bool:
    return isinstance(value, FunctionType) and users_code.is_users(value.__code__)


def _is_filled(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _words(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _words(constant)


def _told(code: CodeType) -> tuple[Any, ...]:
    """What it does, wherever it stands in its file."""
    constants = (_told(one) if isinstance(one, CodeType) else one for one in code.co_consts)
    return (code.co_code, code.co_names, *constants)


# ── digests ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Opaque(Internal):
    pass


class _Sink:
    def __init__(self) -> None:
        self.hash = blake2b(digest_size=12)

    def write(self, data: Any) -> int:
        self.hash.update(data)
        return len(data)


class _Digest(pickle.Pickler):
    """Pickles into a hash, and functions and classes with what they hold. Nobody ever reads it."""

    def __init__(self, sink: _Sink) -> None:
        super().__init__(sink, protocol=5)
        self._sink = sink
        self._under_way: set[int] = set()

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, (type, FunctionType)):
            return self._of_code(value)
        if isinstance(value, ModuleType):
            return str, (value.__name__,)
        if isinstance(value, CellType):
            return tuple, ((value.cell_contents,) if _is_filled(value) else (),)
        if isinstance(value, CodeType):
            return tuple, (_told(value),)
        if isinstance(value, (staticmethod, classmethod)):
            return tuple, ((value.__func__,),)
        if isinstance(value, property):
            return tuple, ((value.fget, value.fset),)
        if is_tensorflows(value):
            raise _Opaque
        if is_array(value) and not value.dtype.hasobject:
            self._sink.write(value.reshape(-1).view("u1").data if value.flags.c_contiguous else value.tobytes())
            return str, (f"{value.dtype} {value.shape} {value.strides}",)
        return NotImplemented

    def _of_code(self, value: Any) -> Any:
        if value in (str, tuple) or not is_users(value):
            return NotImplemented
        if id(value) in self._under_way:
            return str, (value.__qualname__,)
        self._under_way.add(id(value))
        if isinstance(value, type):
            shown = {name: part for name, part in vars(value).items() if not name.startswith("__") or callable(part)}
            parts = {name: part for name, part in shown.items() if name != "_abc_impl" and not isinstance(part, _SLOTS)}
            return tuple, ((value.__qualname__, value.__bases__, parts),)
        held = (value.__defaults__, value.__kwdefaults__, vars(value), value.__closure__)
        return tuple, ((value.__qualname__, value.__code__, *held),)
