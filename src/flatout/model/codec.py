"""Frozen dataclasses to JSON and back.

Fields are written under their own names, and a name that a class does not have is passed over when it is read, so that
a case of a newer version still loads. A class with `OMIT_NONE = True` leaves out what is None; the metadata of a field
(`REST`, `LATER`, `named`, `renamed`) say what else is special about it. A value that does not fit its field raises
CaseUnreadable with the path to it: `steps.ms.median: a number was expected, not 'fast'`.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Literal, TypeVar

from flatout.model.errors import CaseUnreadable
from flatout.model.record import record

Json = dict[str, Any]
Reader = Callable[[Any, str], Any]
"""Makes a value from its JSON form; the text is the path to it, for messages."""

T = TypeVar("T")


REST = {"rest": True}
"""Metadata of a dict field: it holds the names that no other field has, which are written next to them in the JSON."""


LATER = {"later": True}
"""Metadata of a field that older cases do not have: it is written only where it differs from its default."""


def named(name: str) -> dict[str, Any]:
    """Metadata of a field that has another name in JSON."""
    return {"name": name}


def renamed(words: Mapping[str, str]) -> dict[str, Any]:
    """Metadata of a field: words of older versions, and what they are called now."""
    return {"renamed": words}


# ── to JSON ──────────────────────────────────────────────────────────────────────────────────────────────────────


def to_plain(value: Any) -> Json:
    """A dataclass or a dict with dicts, lists, text and numbers only in it, fit for `json.dumps`."""
    return typing.cast(Json, plain(value))


def plain(value: Any) -> Any:
    if value is None or isinstance(value, str):
        return value
    if hasattr(value, "write_json"):
        return value.write_json()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return write_fields(value, [field.name for field in dataclasses.fields(value)])
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.item() if hasattr(value, "item") else value  # a numpy scalar


def write_fields(value: Any, names: Iterable[str]) -> Json:
    """Some fields of a dataclass, in this order."""
    plan = {one.attribute: one for one in plan_of(type(value))}
    omits = getattr(value, "OMIT_NONE", False)
    written: Json = {}
    for name in names:
        one, item = plan[name], getattr(value, name)
        if one.rest:
            written.update(plain(item))
        elif not (omits and item is None) and not (one.later and item == one.default):
            written[one.name] = plain(item)
    return written


# ── from JSON ────────────────────────────────────────────────────────────────────────────────────────────────────


@record(frozen=True)
class PlannedField:
    attribute: str
    name: str
    read: Reader
    required: bool
    rest: bool
    later: bool
    default: Any


def plan_of(kind: Any) -> tuple[PlannedField, ...]:
    """The fields of a dataclass with what reads them."""
    return _plan(kind)


@functools.cache
def _plan(kind: Any) -> tuple[PlannedField, ...]:  # made once: resolving annotations is slow
    hints = typing.get_type_hints(kind)
    return tuple(_planned(field, hints[field.name]) for field in dataclasses.fields(kind))


def _planned(field: dataclasses.Field[Any], hint: Any) -> PlannedField:
    read = _reader(hint)
    if words := field.metadata.get("renamed"):
        today = read

        def read(value: Any, path: str) -> Any:
            return today(words.get(value, value) if isinstance(value, str) else value, path)

    return PlannedField(
        field.name,
        field.metadata.get("name") or field.name,
        read,
        field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
        bool(field.metadata.get("rest")),
        bool(field.metadata.get("later")),
        field.default,
    )


def read(kind: type[T], value: Any, path: str = "") -> T:
    """An object of this class from its JSON form."""
    reader: Reader = _reader(kind)  # type: ignore[arg-type]
    return typing.cast(T, reader(value, path))


def read_fields(kind: type, value: Mapping[str, Any], path: str, names: Collection[str] = ()) -> dict[str, Any]:
    """The arguments of a dataclass, as far as they are there; all fields, or those with these names."""
    plan = [one for one in plan_of(kind) if not names or one.attribute in names]
    known = {one.name for one in plan if not one.rest}
    found = {}
    for one in plan:
        if one.rest:
            found[one.attribute] = {key: item for key, item in value.items() if key not in known}
        elif one.name in value:
            found[one.attribute] = one.read(value[one.name], _join(path, one.name))
    return found


def _dataclass(kind: Any) -> Reader:
    def read_one(value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            raise damaged(path, "an object", value)
        found = read_fields(kind, value, path)
        for one in plan_of(kind):
            if one.required and one.attribute not in found:
                raise CaseUnreadable(f"{_join(path, one.name)}: it is missing")
        return kind(**found)

    return read_one


@functools.cache
def _reader(kind: Any) -> Reader:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return lambda value, path: value
    if hasattr(kind, "read_json"):
        return typing.cast(Reader, kind.read_json)
    if origin in (typing.Union, types.UnionType):
        return _union(arguments)
    if origin is tuple:
        return _several(arguments[0]) if arguments[-1] is Ellipsis else _few(tuple, arguments)
    if origin is dict:
        return _mapping(arguments[1])
    if origin is Literal:
        return _checked("text", str)  # a word of a newer version is kept
    if kind in _SCALARS:
        return _SCALARS[kind]
    if isinstance(kind, type) and issubclass(kind, tuple):  # a NamedTuple
        hints = typing.get_type_hints(kind)
        return _few(lambda items: kind(*items), tuple(hints.values()))
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind)
    raise TypeError(f"{kind} has no JSON form")


def _union(arguments: tuple[Any, ...]) -> Reader:
    known = [one for one in arguments if one is not types.NoneType]
    if len(known) == 1:
        inner = _reader(known[0])
        return lambda value, path: None if value is None else inner(value, path)
    kinds = {str if typing.get_origin(one) is Literal else one for one in arguments}
    return _checked("text, a number or nothing", *kinds)


def _several(kind: Any) -> Reader:
    inner = _reader(kind)

    def read_all(value: Any, path: str) -> Any:
        if not isinstance(value, (list, tuple)):
            raise damaged(path, "a list", value)
        return tuple(inner(item, f"{path}[{index}]") for index, item in enumerate(value))

    return read_all


def _few(make: Callable[[Iterable[Any]], Any], kinds: tuple[Any, ...]) -> Reader:
    inner = [_reader(kind) for kind in kinds]

    def read_all(value: Any, path: str) -> Any:
        if not isinstance(value, (list, tuple)) or len(value) != len(inner):
            raise damaged(path, f"a list of {len(inner)}", value)
        pairs = enumerate(zip(inner, value, strict=True))
        return make([one(item, f"{path}[{index}]") for index, (one, item) in pairs])

    return read_all


def _mapping(kind: Any) -> Reader:
    inner = _reader(kind)

    def read_all(value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            raise damaged(path, "an object", value)
        return {str(key): inner(item, _join(path, str(key))) for key, item in value.items()}

    return read_all


def _checked(expected: str, *kinds: type) -> Reader:
    def read_one(value: Any, path: str) -> Any:
        if isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)):
            return value
        raise damaged(path, expected, value)

    return read_one


def _whole(value: Any, path: str) -> int:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value == value // 1:
        return int(value)
    raise damaged(path, "a whole number", value)


_SCALARS: dict[Any, Reader] = {
    str: _checked("text", str),
    bool: _checked("true or false", bool),
    float: _checked("a number", int, float),
    int: _whole,
}


def damaged(path: str, expected: str, value: Any) -> CaseUnreadable:
    shown = repr(value)
    return CaseUnreadable(f"{path or 'the case'}: {expected} was expected, not {shown[:60]}")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
