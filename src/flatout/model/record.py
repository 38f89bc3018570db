"""`record`: a frozen dataclass that is cheap to define.

`dataclass(frozen=True)` compiles six methods for each class. With a hundred classes that is a third of the start of
`flatout show`. A record compiles its `__init__` alone and shares the rest. To a type checker it is an ordinary frozen
dataclass, and the type checker is what keeps its fields from being assigned.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

__all__ = ["record"]

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:

    def record(*, frozen: bool, kw_only: bool = False):
        assert frozen

        def make(cls: type) -> type:
            cls.__doc__ = cls.__doc__ or cls.__name__  # without one, dataclass() computes the signature as its text
            for name, method in _SHARED.items():
                if name not in vars(cls):
                    setattr(cls, name, method)
            return dataclasses.dataclass(eq=False, repr=False, kw_only=kw_only)(cls)

        return make


def _equal(self: Any, other: object) -> bool:
    return _values(self) == _values(other) if type(self) is type(other) else NotImplemented


def _hash(self: Any) -> int:
    return hash((type(self), _values(self)))


def _text(self: Any) -> str:
    named = zip(dataclasses.fields(self), _values(self), strict=True)
    return f"{type(self).__name__}({', '.join(f'{field.name}={value!r}' for field, value in named)})"


def _values(of: Any) -> tuple[Any, ...]:
    return tuple(getattr(of, field.name) for field in dataclasses.fields(of))


_SHARED = {"__eq__": _equal, "__hash__": _hash, "__repr__": _text}
