"""A record behaves like the frozen dataclass that a type checker takes it for."""

from __future__ import annotations

import dataclasses

from flatout.model.record import record


@record(frozen=True)
class Point:
    x: int
    y: int = 0


@record(frozen=True)
class Other(Point):
    """One with a field more."""

    z: tuple[int, ...] = ()


def test_equal_values_are_equal_and_have_one_hash() -> None:
    assert Point(1) == Point(1, 0)
    assert Point(1) != Point(2)
    assert Other(1) != Point(1)
    assert len({Point(1), Point(1), Other(1), Other(1, z=(3,))}) == 3


def test_it_is_a_dataclass() -> None:
    assert dataclasses.replace(Other(1), z=(2,)) == Other(1, 0, (2,))
    assert [field.name for field in dataclasses.fields(Other)] == ["x", "y", "z"]
    assert repr(Other(1)) == "Other(x=1, y=0, z=())"


def test_a_method_of_its_own_stays() -> None:
    @record(frozen=True)
    class Named:
        name: str

        def __repr__(self) -> str:
            return self.name

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Named)

    assert repr(Named("a")) == "a"
    assert Named("a") == Named("b")
