"""Typed messages between processes: frozen dataclasses, written as one line of JSON.

The object has the fields of the dataclass and, under `"type"`, its name. A field may be a number, a string, a bool,
None, a Literal, a tuple, a dict with string keys, another dataclass, a union of these, or `Any` (whatever JSON holds).
`decode` accepts only what the classes declare: whatever else it is given is an `InvalidMessage` that names the field.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from typing import Any, Literal, TypeVar, overload

from flatout.model import json_text
from flatout.model.errors import InvalidMessage

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
TYPE = "type"


def encode(message: object) -> str:
    """The message as one line of ASCII, without the end of the line."""
    return json.dumps(_plain(message))


@overload
def decode(text: str | bytes, kind: type[A], /) -> A: ...
@overload
def decode(text: str | bytes, kind: type[A], other: type[B], /) -> A | B: ...
@overload
def decode(text: str | bytes, kind: type[A], other: type[B], third: type[C], /) -> A | B | C: ...
def decode(text: str | bytes, /, *kinds: type[Any]) -> Any:
    """The message in `text`, which must be one of these dataclasses."""
    names = " or ".join(kind.__name__ for kind in kinds)
    try:
        value = json_text.parse(text)
    except ValueError as error:
        raise InvalidMessage(f"This is not a message ({names} was expected), because it is not JSON: {error}") from None
    return _dataclass(value, kinds, names)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {TYPE: type(value).__name__, **fields}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _dataclass(value: Any, kinds: tuple[type[Any], ...], where: str) -> Any:
    if not isinstance(value, dict) or TYPE not in value:
        raise _mismatch(where, " or ".join(kind.__name__ for kind in kinds), value)
    kind = next((kind for kind in kinds if kind.__name__ == value[TYPE]), None)
    if kind is None:
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise InvalidMessage(f"{where}: expected {expected}, got a {value[TYPE]!r}.")
    known = _fields(kind)
    path = kind.__name__ if where == kind.__name__ or " or " in where else where
    given = {name: item for name, item in value.items() if name != TYPE}
    for name in given:
        if name not in known:
            raise InvalidMessage(f"{path}: there is no field {name!r}. Its fields are: {', '.join(known) or 'none'}.")
    for name, (_, required) in known.items():
        if required and name not in given:
            raise InvalidMessage(f"{path}.{name} is missing.")
    return kind(**{name: _value(item, known[name][0], f"{path}.{name}") for name, item in given.items()})


_known_fields: dict[type[Any], dict[str, tuple[Any, bool]]] = {}


def _fields(kind: type[Any]) -> dict[str, tuple[Any, bool]]:
    """The type of each field, and whether it must be given."""
    known = _known_fields.get(kind)
    if known is None:
        hints = typing.get_type_hints(kind)
        missing = dataclasses.MISSING
        known = _known_fields[kind] = {
            field.name: (hints[field.name], field.default is missing and field.default_factory is missing)
            for field in dataclasses.fields(kind)
        }
    return known


def _value(value: Any, expected: Any, where: str) -> Any:
    if expected is Any:
        return value
    origin = typing.get_origin(expected)
    arguments = typing.get_args(expected)
    if origin in (typing.Union, types.UnionType):
        return _one_of(value, arguments, where)
    if origin is Literal:
        if value not in arguments or isinstance(value, bool):
            raise _mismatch(where, " or ".join(map(repr, arguments)), value)
        return value
    if origin is tuple:
        return _tuple(value, arguments, where)
    if origin is dict:
        if not isinstance(value, dict):
            raise _mismatch(where, "an object", value)
        return {key: _value(item, arguments[1], f"{where}[{key!r}]") for key, item in value.items()}
    if dataclasses.is_dataclass(expected):
        return _dataclass(value, (typing.cast("type[Any]", expected),), where)
    return _scalar(value, expected, where)


def _one_of(value: Any, choices: tuple[Any, ...], where: str) -> Any:
    if value is None and types.NoneType in choices:
        return None
    kinds = tuple(choice for choice in choices if dataclasses.is_dataclass(choice))
    if isinstance(value, dict) and kinds:
        return _dataclass(value, typing.cast("tuple[type[Any], ...]", kinds), where)
    for choice in choices:
        if choice is not types.NoneType and choice not in kinds:
            try:
                return _value(value, choice, where)
            except InvalidMessage:
                continue
    raise _mismatch(where, " or ".join(_name(choice) for choice in choices), value)


def _tuple(value: Any, arguments: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _mismatch(where, "a list", value)
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        arguments = (arguments[0],) * len(value)
    if len(arguments) != len(value):
        raise _mismatch(where, f"a list of {len(arguments)}", value)
    return tuple(
        _value(item, kind, f"{where}[{index}]") for index, (item, kind) in enumerate(zip(value, arguments, strict=True))
    )


def _scalar(value: Any, expected: Any, where: str) -> Any:
    accepted = (int, float) if expected is float else expected
    if not isinstance(value, accepted) or (isinstance(value, bool) and expected is not bool):
        raise _mismatch(where, _name(expected), value)
    try:
        return float(value) if expected is float else value
    except OverflowError:  # a whole number of 400 digits
        raise _mismatch(where, _name(expected), value) from None


def _mismatch(where: str, expected: str, value: Any) -> InvalidMessage:
    text = json.dumps(value)
    return InvalidMessage(f"{where}: expected {expected}, got {text if len(text) < 80 else text[:77] + '…'}.")


def _name(kind: Any) -> str:
    return "null" if kind is types.NoneType else getattr(kind, "__name__", str(kind))
